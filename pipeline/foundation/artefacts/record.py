"""record.json, the only description of what made an artefact."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict

from pipeline.foundation.files import atomic, parsing, regular
from pipeline.foundation.files.digest import digest, of_folder, sha256
from pipeline.foundation.parts.errors import InputError

FILE = "record.json"


def _require_inside(contents: dict[str, str]) -> dict[str, str]:
    """Refuse contents that are neither in a folder nor beside it."""
    for name in contents:
        parts = PurePosixPath(name.removeprefix("../")).parts
        if name.startswith("/") or "\0" in name or ".." in parts:
            raise ValueError(f"{name!r} leads out of the folder")
    return contents


class Reference(BaseModel):
    """An artefact that another one was made from."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    kind: str
    name: str  # The name under which a project has it
    identity: str  # Its `Record.identity` at that time


class Record(BaseModel):
    """What record.json holds."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    kind: str  # The kind of artefact, such as "head"
    request: dict[str, Any] = {}  # The JSON of the `Request` that it was made for
    made_from: dict[
        str, Reference
    ] = {}  # Role, such as "manifest" -> the artefact it was made from
    versions: dict[str, int | str] = {}
    # File, or folder of an array, by its path in the artefact -> digest
    contents: Annotated[dict[str, str], AfterValidator(_require_inside)] = {}
    # What readers need to know of the result, such as a head's width. Each kind says what. The key
    # `place` says where a file was found, and is in no identity.
    facts: dict[str, Any] = {}
    # The machines that worked on it, the latest last. They are never compared.
    machines: list[dict[str, Any]] = []
    finished: bool = (
        False  # Whether it is complete; False while it is written, and after an interruption
    )
    seal: str = ""  # Digest of all other fields, which shows an edit

    @property
    def identity(self) -> str:
        """Digest of all that it is, without where it was made: equal for equal artefacts of two
        machines.
        """
        parts = self.model_dump(exclude={"machines", "finished", "seal"})
        return digest(parts | {"facts": without_places(self.facts)})

    @property
    def computed_seal(self) -> str:
        """The seal that belongs to the other fields."""
        return digest(self.model_dump(exclude={"seal"}))

    def changed(self, **fields: Any) -> "Record":
        """The record with other fields, not yet sealed."""
        return self.model_copy(update=fields)

    def sealed(self) -> "Record":
        """The record with the seal of its other fields."""
        record = self.changed(contents=dict(sorted(self.contents.items())))
        return record.changed(seal=record.computed_seal)

    def refers(self, name: str) -> Reference:
        """The reference to this artefact by the name under which the project has it."""
        return Reference(kind=self.kind, name=name, identity=self.identity)


def without_places(facts: Any) -> Any:
    """Facts, or a part of them, without the values of `place`."""
    if isinstance(facts, Mapping):
        return {key: without_places(value) for key, value in facts.items() if key != "place"}
    if isinstance(facts, list):
        return [without_places(fact) for fact in facts]
    return facts


def save(folder: Path, record: Record) -> Record:
    """Seal a record and write it into a folder; the sealed record."""
    record = record.sealed()
    atomic.write_text(folder / FILE, json.dumps(record.model_dump(), indent=1))
    return record


def load(folder: Path) -> Record:
    """Read a folder's record as it is, without comparing its seal; OSError or ValueError if missing
    or damaged.
    """
    tree = parsing.shallow(parsing.from_json(regular.text(folder / FILE)))
    return Record.model_validate(tree)


def digest_of(path: Path) -> str:
    """SHA-256 of a file, or of the files below a folder and their names."""
    return of_folder(path) if path.is_dir() else sha256(path)


def require(folder: Path, *names: str) -> Record:
    """Read a folder's record; check its seal, and those files of these names, or below them,
    against their digests. A file that is lost is left to the code that reads it.

    Args:
        folder: The artefact's folder.
        *names: Files, or folders, whose bytes are compared with their digests.

    Returns:
        The record.

    Raises:
        InputError: If there is no record, or it or one of these files was edited.
    """
    try:
        record = load(folder)
    except OSError:
        raise InputError(
            f"{folder}: no {FILE}, so what made it is unknown; make it again"
        ) from None
    except ValueError:
        raise InputError(
            f"{folder / FILE}: damaged; restore it, or make what is in the folder again"
        ) from None
    if record.seal != record.computed_seal:
        raise InputError(
            f"{folder / FILE}: was edited; restore it, or make what is in the folder again"
        )
    for name in below(record, *names):
        if (folder / name).exists() and digest_of(folder / name) != record.contents[name]:
            raise InputError(
                f"{folder / name}: changed after it was written, as {FILE} beside it shows; put it back, "
                f"or delete {folder} and make it again"
            )
    return record


def update(folder: Path, **fields: Any) -> Record:
    """Write a folder's record with other fields; the sealed record."""
    return save(folder, require(folder).changed(**fields))


def describe(folder: Path, *names: str) -> None:
    """Record these files as they are now; those that do not exist are recorded no longer."""
    before = require(folder).contents
    unchanged = {name: digest for name, digest in before.items() if name not in names}
    update(folder, contents=unchanged | contents(folder, names))


@contextmanager
def rewriting(folder: Path, *names: str) -> Iterator[None]:
    """Record anew the files that the block writes. If it is interrupted, nothing is recorded of
    them.
    """
    before = require(folder).contents
    unchanged = {name: digest for name, digest in before.items() if name not in names}
    update(folder, contents=unchanged)
    yield
    describe(folder, *names)


def contents(folder: Path, names: Sequence[str] | None = None) -> dict[str, str]:
    """Digest the files and folders of these names that a folder has.

    names: None for all that is in it, except its record: each file, and each folder of an array as
        a whole.
    """
    if names is None:
        paths = [path for path in _parts(folder) if path != folder / FILE]
    else:
        paths = [folder / name for name in names if (folder / name).exists()]
    return {path.relative_to(folder).as_posix(): digest_of(path) for path in paths}


def _parts(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not (path / "zarr.json").exists() and any(path.iterdir()):
            yield from _parts(path)
        else:
            yield path


def below(record: Record, *names: str) -> list[str]:
    """List the contents of these names, and those in folders of these names."""
    return [
        known
        for known in record.contents
        if any(known == name or known.startswith(f"{name}/") for name in names)
    ]
