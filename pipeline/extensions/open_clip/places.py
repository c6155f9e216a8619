"""Where a model of OpenCLIP is: a folder, a name on the hub, or a checkpoint of its training."""

import os
from pathlib import Path

from pipeline.foundation.files import model_folder, not_weights, unfetched, weights
from pipeline.foundation.parts.errors import InputError
from pipeline.make.dual_encoders.places import TEXT_FILES, Places, refuse_typo

# A folder's files, and the flags of a training.
CONFIG = "open_clip_config.json"
WEIGHTS = "open_clip_model.safetensors"
PARAMS = "params.txt"


def find(place: str) -> Path:
    """Find or download a model in OpenCLIP's format, or find a checkpoint of its training that has
    its params.txt.
    """
    refuse_typo(place)
    if is_checkpoint(place):
        checkpoint = Path(place.partition("#")[0])
        _refuse_other(checkpoint)
        params(checkpoint)
        return Path(place)
    folder = weights.folder(
        place,
        "model",
        f"name the folder with {CONFIG} and {WEIGHTS}, or a checkpoint "
        "of OpenCLIP's training, epoch_N.pt",
        [*TEXT_FILES, WEIGHTS],
    )
    model_folder.refuse_unfetched_settings(folder)
    if os.path.lexists(folder / WEIGHTS):
        unfetched.refuse([folder / WEIGHTS])
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


PLACES = Places(find, "open_clip", "a checkpoint of OpenCLIP's training")


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


def _refuse_other(checkpoint: Path) -> None:
    """Refuse a file that is no checkpoint of a training: weights of a folder, and what no reader
    takes.
    """
    folder = checkpoint.absolute().parent
    if (folder / CONFIG).is_file() and checkpoint.name == WEIGHTS:
        raise InputError(f"{checkpoint}: is a file; name its folder, open_clip:{folder}")
    if (folder / "config.json").is_file() and checkpoint.name in model_folder.WEIGHTS:
        raise InputError(
            f"{checkpoint}: is a file of a model of transformers; name its folder, such as clip:{folder}"
        )
    if checkpoint.is_file():
        what = not_weights.named(checkpoint)
        if what:
            raise InputError(f"{checkpoint}: is {what}")
