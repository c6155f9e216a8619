"""Where an encoder's files are, and whether they are of its kind, without importing torch or a
library of encoders.

Those take seconds to import. What a slip of the pen makes is refused before.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from pipeline.foundation.artefacts.record import FILE
from pipeline.foundation.files import model_folder, not_weights, unfetched, weights
from pipeline.foundation.files.parsing import from_json
from pipeline.foundation.parts.errors import InputError, first_line, refusing, similar

# The kinds of the library `transformers`, and the `model_type` in the config.json of each.
MODEL_TYPES = {
    "clip": ("clip",),
    "siglip": ("siglip",),
    "siglip2": ("siglip2", "siglip"),
    "vision_text": ("vision-text-dual-encoder",),
}
# A tokenizer's and a configuration's files.
TEXT_FILES = ("*.json", "*.txt", "*.model")
# A model's weights where the hub has none as safetensors.
PICKLED = "pytorch_model*.bin"
# OpenCLIP's files: a folder's, and the flags of its training.
CONFIG = "open_clip_config.json"
OPEN_CLIP_WEIGHTS = "open_clip_model.safetensors"
PARAMS = "params.txt"


def check(kind: str, place: str) -> None:
    """Refuse a place that holds no encoder of a kind: of the built-in kinds, as their classes find
    it.
    """
    if kind in MODEL_TYPES:
        transformers(place, MODEL_TYPES[kind])
    elif kind == "open_clip":
        open_clip(place)
    elif kind == "st":
        sentence_transformers(place)
    elif kind == "tuned":
        _refuse_typo(place)
        if not (Path(place) / FILE).is_file():
            raise InputError(
                f"{place}: is no folder of `pipeline finetune`; of another model write the kind, such as "
                f"clip:{place}"
            )
    elif not Path(place).exists():
        weights.local(place, "model", "name the folder")


def transformers(place: str, model_types: Sequence[str]) -> Path:
    """Find or download a model of `transformers` of one of some types."""
    _refuse_typo(place)
    folder = weights.folder(
        place,
        "model",
        "name the folder; a checkpoint of OpenCLIP's training is open_clip:FILE",
        instead=PICKLED,
    )
    model_folder.check(folder)
    if not (folder / "config.json").is_file():
        other = ""
        if (folder / CONFIG).is_file():
            other = f", or write open_clip:{place}"
        raise InputError(
            f"{folder}: has no config.json; expected a model of the library transformers{other}"
            f"{model_folder.instead(folder)}"
        )
    with refusing(
        (OSError, ValueError, TypeError, KeyError),
        lambda error: f"{folder}: no configuration that can be read: {first_line(error)}",
    ):
        config = from_json((folder / "config.json").read_text(encoding="utf-8"))
        model_type = str(config["model_type"])
    if model_type not in model_types:
        kinds = [kind for kind, types in MODEL_TYPES.items() if model_type in types]
        other = f", or write {kinds[0]}:{place}" if kinds else ""
        raise InputError(f"{folder}: is a {model_type}; expected {' or '.join(model_types)}{other}")
    return folder


def sentence_transformers(place: str) -> Path:
    """Find or download a model of sentence-transformers."""
    _refuse_typo(place)
    folder = weights.folder(place, "model", "name the folder", [*TEXT_FILES, "*.safetensors"])
    model_folder.check(folder)
    if not any((folder / file).is_file() for file in ("modules.json", "config.json")):
        raise InputError(
            f"{folder}: has no modules.json; expected a model of the library sentence-transformers"
            f"{model_folder.instead(folder)}"
        )
    return folder


def open_clip(place: str) -> Path:
    """Find or download a model in OpenCLIP's format, or find a checkpoint of its training that has
    its params.txt.
    """
    _refuse_typo(place)
    if is_checkpoint(place):
        checkpoint = Path(place.partition("#")[0])
        _refuse_other(checkpoint)
        params(checkpoint)
        return Path(place)
    folder = weights.folder(
        place,
        "model",
        f"name the folder with {CONFIG} and {OPEN_CLIP_WEIGHTS}, or a checkpoint "
        "of OpenCLIP's training, epoch_N.pt",
        [*TEXT_FILES, OPEN_CLIP_WEIGHTS],
    )
    model_folder.refuse_unfetched_settings(folder)
    if os.path.lexists(folder / OPEN_CLIP_WEIGHTS):
        unfetched.refuse([folder / OPEN_CLIP_WEIGHTS])
    if not (folder / CONFIG).is_file():
        checkpoints = sorted([*folder.glob("checkpoints/epoch_*"), *folder.glob("epoch_*")])
        if checkpoints:
            raise InputError(
                f"{folder}: has no {CONFIG}; name one of its checkpoints, open_clip:{checkpoints[-1]}"
            )
        raise InputError(
            f"{folder}: has no {CONFIG}; expected a model of OpenCLIP, or use clip: or siglip:"
            f"{model_folder.instead(folder)}"
        )
    return folder


def _refuse_other(checkpoint: Path) -> None:
    """Refuse a file that is no checkpoint of a training: weights of a folder, and what no reader
    takes.
    """
    folder = checkpoint.absolute().parent
    if (folder / CONFIG).is_file() and checkpoint.name == OPEN_CLIP_WEIGHTS:
        raise InputError(f"{checkpoint}: is a file; name its folder, open_clip:{folder}")
    if (folder / "config.json").is_file() and checkpoint.name in model_folder.WEIGHTS:
        raise InputError(
            f"{checkpoint}: is a file of a model of transformers; name its folder, such as clip:{folder}"
        )
    if checkpoint.is_file():
        what = not_weights.named(checkpoint)
        if what:
            raise InputError(f"{checkpoint}: is {what}")


def is_checkpoint(place: str) -> bool:
    """Whether a place, without what follows a #, is a file or a folder of torch's distributed
    checkpoints.
    """
    path = Path(place.partition("#")[0])
    return path.is_file() or (path / weights.DISTRIBUTED).is_file()


def params(checkpoint: Path) -> Path:
    """Find the flags of the training that a checkpoint of OpenCLIP is of."""
    for folder in checkpoint.absolute().parents[:2]:
        if (folder / PARAMS).is_file():
            return folder / PARAMS
    raise InputError(
        f"{checkpoint}: no {PARAMS} of its training beside it or one folder above; copy it there, or "
        "write one, with lines such as `model: ViT-B-32` and `force_quick_gelu: True`"
    )


def _refuse_typo(place: str) -> None:
    """Refuse what is neither on this machine nor a name on the hub, which is OWNER/NAME."""
    path = Path(place.partition("#")[0])
    if path.exists():
        return
    if "*" in place:
        raise InputError(
            f"model {place}: there is no such folder or file; behind a colon the shell replaces no *, so "
            "write the path out"
        )
    is_path = path.is_absolute() or place.startswith(".") or path.suffix == ".pt"
    if is_path or place.count("/") != 1:
        raise InputError(
            f"model {place}: there is no such folder or file{similar(path)}; a name on the Hugging Face "
            "hub is OWNER/NAME"
        )
