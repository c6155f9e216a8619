"""Files of scores as members of an ensemble, with the facts that its record needs."""

from dataclasses import replace
from pathlib import Path

from pipeline.files.digest import digest, of_folder, sha256
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError
from pipeline.systems.scores.foreign.opening import model_of, open_system, places
from pipeline.systems.scores.judged import Columns
from pipeline.systems.scores.layout import is_store
from pipeline.systems.scores.made import Made
from pipeline.systems.scores.system import System


def open_recorded(text: str, columns: Columns, root: Path = Path()) -> System:
    """Open what `open_system` opens, with a record: a store has its own, a file needs the manifest."""
    if is_store(root / text) or not (":" in text or (root / text).exists()):
        return System.open(root / text)
    if model_of(text, root):
        raise InputError(f"{text}: is a model; `pipeline embed` and then `pipeline score` make a system of it, which "
                         "an ensemble takes by its name")
    if columns.manifest is None:
        raise InputError(f"{text}: is a file of scores; name the --manifest whose images and captions it is of")
    system, known = open_system(text, columns, root=root), Manifest.load(columns.manifest)
    return replace(system, folder=places(text, root)[0][0], made_from=Made(
        dataset=known.dataset, split=columns.split or "test", manifest=known.digest, file=digest_of(text, root),
        distance=columns.distance))


def digest_of(text: str, root: Path = Path()) -> str:
    """A digest of the files that a user names, and of the names of their arrays."""
    found = [(of_folder(path) if path.is_dir() else sha256(path), names) for path, names in places(text, root)]
    return found[0][0] if len(found) == 1 and not found[0][1] else digest(found)
