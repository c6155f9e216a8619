"""Where an encoder's files are, and whether they are of its kind, without importing torch or a
library of encoders.

Those take seconds to import. What a slip of the pen makes is refused before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.foundation.artefacts.record import FILE
from pipeline.foundation.files import model_folder, weights
from pipeline.foundation.files.parsing import from_json
from pipeline.foundation.parts import extension
from pipeline.foundation.parts.errors import InputError, first_line, refusing, similar
from pipeline.foundation.parts.lazy import imported

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


@dataclass(frozen=True)
class Places:
    """Where the models of a kind that an extension adds are."""

    # The place as it is opened, such as a folder; InputError for what is none.
    find: Callable[[str], Path]
    library: str  # As `DualEncoder.library`
    file: str | None = None  # What a single file of this kind is


def check(kind: str, place: str) -> None:
    """Refuse a place that holds no encoder of a kind: of the core's and the extensions' kinds, as
    their classes find it.
    """
    of_extensions = _of_extensions()
    if kind in MODEL_TYPES:
        transformers(place, MODEL_TYPES[kind])
    elif kind in of_extensions:
        of_extensions[kind].find(place)
    elif kind == "tuned":
        refuse_typo(place)
        if not (Path(place) / FILE).is_file():
            raise InputError(
                f"{place}: is no folder of `pipeline finetune`; of another model write the kind, such as "
                f"clip:{place}"
            )
    elif not Path(place).exists():
        weights.local(place, "model", "name the folder")


def _of_extensions() -> dict[str, Places]:
    """The kinds that extensions add, and where their models are."""
    added = extension.parts("encoder_places")
    return {kind: imported(place) for kind, place in added.items()}


def libraries() -> list[str]:
    """The libraries that encoders are models of."""
    return ["transformers", *(places.library for places in _of_extensions().values())]


def transformers(place: str, model_types: Sequence[str]) -> Path:
    """Find or download a model of `transformers` of one of some types."""
    refuse_typo(place)
    advice = "name the folder"
    for kind, places in _of_extensions().items():
        if places.file:
            advice += f"; {places.file} is {kind}:FILE"
    folder = weights.folder(place, "model", advice, instead=PICKLED)
    model_folder.check(folder)
    if not (folder / "config.json").is_file():
        other = ""
        for mark, kind in extension.marks().items():
            if (folder / mark).is_file():
                other = f", or write {kind}:{place}"
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


def refuse_typo(place: str) -> None:
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
