"""The pretrained network that a text encoder begins with, looked for before torch is imported."""

from pipeline.foundation.files import model_folder, weights
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.foundation.settings import Training
from pipeline.foundation.settings.kinds import TABLES


def require(kind: str, training: Training) -> None:
    """Check a text encoder's options, and find or download the checkpoint that the settings name,
    if it has one.
    """
    options = training.texts.get(kind, {})
    with refusing(
        InputError,
        lambda error: f"{error}; -S training.NAME.texts.{kind}.OPTION=VALUE sets its options",
    ):
        TABLES["texts"].options(kind, options)
    if kind == "bert":
        model_folder.check(
            weights.folder(training.bert, "BERT checkpoint", "set training.NAME.bert to the folder")
        )
    elif kind == "tokens":
        model_folder.check(
            weights.folder(
                options["weights"],
                "text network checkpoint",
                "set training.NAME.texts.tokens.weights to the folder",
            )
        )
