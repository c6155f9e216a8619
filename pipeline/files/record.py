"""What made a thing: the versions of the parts whose numbers it rests on, and what was asked for.

record.json lies beside a head and in a store. If the same is asked again, a command says "nothing to do" before it
loads anything; if not, or without a record, it loads the networks and compares in full. A seal shows an edit.

A part is an entry of a table, such as "poolings/gpo", or a law that many share, such as "training". Its version is
raised by hand when its numbers change, and by nothing else: modules may be moved and renamed, options added, messages
reworded. `tests/test_golden.py` fails where numbers change and the version does not. Parts of other packages have no
version here; they go by digests of their own source files (`pipeline.parts.plugins.sources`).
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.files import atomic, parsing
from pipeline.files.digest import digest, sha256
from pipeline.parts import plugins
from pipeline.parts.errors import InputError
from pipeline.parts.lazy import LookupTable

# Part -> its version, where that is not 1. A comment says what changed.
RAISED: dict[str, int] = {
    "sample": 2,  # captions say "an orange", not "a orange"
}
FILE = "record.json"
# The files in which earlier versions said the same.
EARLIER = EARLIER_VERSIONS, EARLIER_REQUEST = "code.json", "asked.json"
FILES = (FILE, *EARLIER)
# Part of ours -> its version; module of another package -> its digest.
Versions = Mapping[str, int | str]


class Record(BaseModel):
    """What record.json holds."""

    model_config = ConfigDict(strict=True)

    versions: dict[str, int | str] | None = None  # what `versions` gave; None where that is not known
    request: str | None = None  # digest of what was asked for; None while it is not finished
    wrote: dict[str, str] = {}  # file -> SHA-256, of files that must stay as they are
    watched: str | None = None  # a folder of which no file may be written later than the record
    seal: str | None = None  # digest of all the others

    @property
    def found_seal(self) -> str:
        """The seal that it should have."""
        return digest(self.model_dump(exclude={"seal"}))


def version(part: str) -> int:
    """Look up the version of a part of ours, such as "poolings/gpo" or "training"."""
    return RAISED.get(part, 1)


def versions(*parts: str | tuple[LookupTable[Any], str]) -> dict[str, int | str]:
    """Collect what the numbers of something depend on of the code.

    Args:
        *parts: Laws by name, such as "training"; entries of tables, such as `(POOLINGS, "gpo")`.

    Returns:
        What is recorded, sorted by name.

    Raises:
        InputError: For a name that a table does not have.
    """
    found: dict[str, int | str] = {}
    for part in parts:
        if isinstance(part, str):
            found[part] = version(part)
            continue
        table, name = part
        if table.is_built_in(name):
            found[f"{table.kind}/{name}"] = version(f"{table.kind}/{name}")
        else:
            found |= plugins.sources(table.module(name))
    return dict(sorted(found.items()))


def changed(folder: Path, now: Versions) -> list[str]:
    """Compare what a folder records with the code as it is now.

    Args:
        folder: A folder with a record. Its earlier form, a digest a module, stands for version 1 of every part.
        now: What `versions` gives.

    Returns:
        The parts and modules that differ, sorted; all of `now` where nothing is recorded.

    Raises:
        InputError: If the record was edited.
    """
    there = read(folder).versions
    if there is None:
        return list(now)
    others = {name for name, made in (there | dict(now)).items() if isinstance(made, str)}
    return sorted([name for name, made in now.items() if isinstance(made, int) and there.get(name, 1) != made]
                  + [name for name in others if there.get(name) != now.get(name)])


def is_done(folder: Path, request: Mapping[str, Any]) -> bool:
    """Compare a request with the recorded one, and the recorded files with their digests.

    Args:
        folder: The folder that the request makes.
        request: As for `finish`.

    Returns:
        Whether the folder holds the request's result unchanged, and nothing was written below the watched folder.

    Raises:
        InputError: If the record was edited.
    """
    there = read(folder)
    try:
        if there.request != digest(dict(request)) \
                or any(sha256(folder / name) != was for name, was in there.wrote.items()):
            return False
        # When a file changed the system sets, no program can.
        written = (folder / (FILE if (folder / FILE).exists() else EARLIER_REQUEST)).stat().st_mtime_ns
        return not any(os.stat(os.path.join(place, name)).st_ctime_ns > written
                       for place, _, names in (os.walk(there.watched) if there.watched else ()) for name in names)
    except OSError:
        return False


def is_asked(folder: Path) -> bool:
    """Whether a folder records a finished request."""
    return read(folder).request is not None


def write(folder: Path, made_by: Versions) -> None:
    """Record which versions made what is in a folder. The request is recorded when it is finished."""
    _save(folder, Record(versions=dict(made_by)))


def finish(folder: Path, request: Mapping[str, Any], wrote: Iterable[str] | None = None,
           watched: Path | None = None) -> None:
    """Record a finished request beside the versions that the folder has, or that the request names.

    Args:
        folder: The folder that was made.
        request: A JSON value: all that the result depends on, files by their digests.
        wrote: Files of the folder, by their names in it, that must stay as they are; None for all.
        watched: A folder of which no file may be written later than this record.
    """
    versions = request.get("versions", read(folder).versions)
    if wrote is None:
        files = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        wrote = sorted(name for name in files if name not in FILES)
    _save(folder, Record(versions=versions, request=digest(dict(request)),
                         wrote={name: sha256(folder / name) for name in wrote},
                         watched=None if watched is None else str(watched.absolute())))


def _save(folder: Path, record: Record) -> None:
    record.seal = record.found_seal
    atomic.write_text(folder / FILE, json.dumps(record.model_dump(exclude_none=True), indent=1))
    for name in EARLIER:
        (folder / name).unlink(missing_ok=True)


def read(folder: Path) -> Record:
    """Read a folder's record, also in the two files of its earlier form; an empty one where there is none.

    Raises:
        InputError: If it was edited.
    """
    try:
        there = _parsed(folder)
    except FileNotFoundError:
        versions, asked = parsing.json_object(folder / EARLIER_VERSIONS), parsing.json_object(folder / EARLIER_REQUEST)
        # A digest of a module of ours stands for version 1 of every part.
        others = None if versions is None else {
            name: made for name, made in versions.items() if isinstance(made, int) or not name.startswith("pipeline.")}
        try:
            return Record.model_validate({"versions": others, **(asked or {})})
        except ValidationError:
            return Record()
    except (OSError, ValueError):  # damaged: it says nothing, and what it stands beside is compared in full
        return Record()
    if there.seal != there.found_seal:
        raise InputError(f"{folder / FILE}: was edited; restore it, or delete it: then the files beside it are "
                         "compared in full, and which versions made them is unknown")
    return there


def seals(folder: Path) -> tuple[str | None, str] | None:
    """The recorded and the found digest of a folder's record; None where there is none."""
    try:
        there = _parsed(folder)
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return None, "not readable"
    return there.seal, there.found_seal


def _parsed(folder: Path) -> Record:
    return Record.model_validate(parsing.from_json((folder / FILE).read_text(encoding="utf-8")))


def named(parts: list[str]) -> str:
    """Name some parts in a message: the first one and the number of others."""
    return min(parts, default="") + (f" and {len(parts) - 1} more" if len(parts) > 1 else "")
