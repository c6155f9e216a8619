"""The pretrained network that a text encoder begins with, looked for before torch is imported."""

from pipeline.files import weights
from pipeline.settings import Training


def require(kind: str, training: Training) -> None:
    """Find or download the checkpoint that the settings name for a kind of text encoder, if it has one."""
    if kind == "bert":
        weights.folder(training.bert, "BERT checkpoint", "set training.NAME.bert to the folder")
    elif kind == "tokens" and (name := training.texts.get(kind, {}).get("weights")):
        weights.folder(str(name), "text network checkpoint", "set training.NAME.texts.tokens.weights to the folder")
