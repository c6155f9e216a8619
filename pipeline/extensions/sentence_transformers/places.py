"""Where a model of sentence-transformers is: a folder, or a name on the hub."""

from pathlib import Path

from pipeline.foundation.files import model_folder, weights
from pipeline.foundation.parts.errors import InputError
from pipeline.make.dual_encoders.places import TEXT_FILES, Places, refuse_typo


def find(place: str) -> Path:
    """Find or download a model of sentence-transformers."""
    refuse_typo(place)
    folder = weights.folder(place, "model", "name the folder", [*TEXT_FILES, "*.safetensors"])
    model_folder.check(folder)
    if not any((folder / file).is_file() for file in ("modules.json", "config.json")):
        raise InputError(
            f"{folder}: has no modules.json; expected a model of the library sentence-transformers"
            f"{model_folder.instead(folder)}"
        )
    return folder


PLACES = Places(find, "sentence-transformers")
