"""The record of what made a head or a store: the versions of the code that computed it, and the request.

record.json lies beside a head and in a store. If the same request comes again, a command says "nothing to do" before it
loads anything; otherwise it loads the networks and compares in full. Its seal, a digest, shows edits of the record, and
its digests of files show edits of these: whoever opens a head or a store calls `require`, and traces call `compare`.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from pipeline.files import atomic, parsing, regular
from pipeline.files.compared import Step
from pipeline.files.digest import digest, sha256
from pipeline.parts.errors import InputError

FILE = "record.json"
# Part of this package -> its version; module of another package -> its digest.
Versions = Mapping[str, int | str]


class Record(BaseModel):
    """What record.json holds."""

    model_config = ConfigDict(strict=True)

    versions: dict[str, int | str] | None = None  # what `versions` gave; None where that is not known
    request: str | None = None  # digest of what was asked for; None while it is not finished
    wrote: dict[str, str] = {}  # file -> SHA-256, of files that must stay as they are
    watched: str | None = None  # a folder; no file below it may be newer than the record
    seal: str | None = None  # digest of all the other fields

    @property
    def found_seal(self) -> str:
        """The seal computed from the other fields."""
        return digest(self.model_dump(exclude={"seal"}))


def changed(folder: Path, now: Versions) -> list[str]:
    """Compare what a folder records with the code as it is now.

    Args:
        folder: A folder with a record.
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
        # The change time (ctime) is set by the system; programs cannot set it.
        written = (folder / FILE).stat().st_mtime_ns
        return not any(os.stat(os.path.join(place, name)).st_ctime_ns > written
                       for place, _, names in (os.walk(there.watched) if there.watched else ()) for name in names)
    except OSError:
        return False


def is_asked(folder: Path) -> bool:
    """Whether a folder records a finished request."""
    return read(folder).request is not None


def write(folder: Path, made_by: Versions) -> None:
    """Record which versions made what is in a folder. The request is recorded when it is finished."""
    _save(folder, Record(versions=dict(made_by), wrote=read(folder).wrote))


def finish(folder: Path, request: Mapping[str, Any], wrote: Iterable[str] | None = None,
           watched: Path | None = None) -> None:
    """Record a finished request, with the versions that it names, or else those that the folder records.

    Args:
        folder: The folder that was made.
        request: A JSON value: all that the result depends on, files by their digests.
        wrote: Files of the folder, by their names in it, that must stay as they are; None for all.
        watched: A folder; no file below it may be newer than this record.
    """
    versions = request.get("versions", read(folder).versions)
    if wrote is None:
        files = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        wrote = sorted(name for name in files if name != FILE)
    _save(folder, Record(versions=versions, request=digest(dict(request)), wrote=_digests(folder, wrote),
                         watched=None if watched is None else str(watched.absolute())))


def keep(folder: Path, *names: str) -> None:
    """Record files of a folder as they are now; those that do not exist are recorded no longer."""
    record = read(folder)
    others = {name: known for name, known in record.wrote.items() if name not in names}
    _rewrite(folder, record, others | _digests(folder, (name for name in names if (folder / name).is_file())))


@contextmanager
def rewriting(folder: Path, *names: str) -> Iterator[None]:
    """Record anew the files that the block writes. If it is interrupted, nothing is recorded of them."""
    record = read(folder)
    _rewrite(folder, record, {name: known for name, known in record.wrote.items() if name not in names})
    yield
    keep(folder, *names)


def _rewrite(folder: Path, record: Record, wrote: Mapping[str, str]) -> None:
    """Change which files a record has digests of. The time of its request stays, see `is_done`."""
    file = folder / FILE
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns) if file.exists() else None
    _save(folder, record.model_copy(update={"wrote": dict(wrote)}))
    if times is not None:
        os.utime(file, ns=times)


def _digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    return {name: sha256(folder / name) for name in names}


def _save(folder: Path, record: Record) -> None:
    record.wrote = dict(sorted(record.wrote.items()))
    record.seal = record.found_seal
    atomic.write_text(folder / FILE, json.dumps(record.model_dump(exclude_none=True), indent=1))


def read(folder: Path) -> Record:
    """Read a folder's record; an empty one where there is none.

    Raises:
        InputError: If it was edited.
    """
    try:
        record = _parsed(folder)
    except (OSError, ValueError):  # damaged: as without a record, the files beside it are compared in full
        return Record()
    if record.seal != record.found_seal:
        raise InputError(f"{folder / FILE}: was edited; restore it, or make what is in the folder again")
    return record


def require(folder: Path, *names: str) -> dict[str, str]:
    """Check that a folder's record, and the files of these names that it records, are as they were written.

    A file that is lost is left to the code that reads it.

    Returns:
        The digests of these files.

    Raises:
        InputError: If one was edited.
    """
    recorded = read(folder).wrote
    existing = [name for name in names if name in recorded and (folder / name).is_file()]
    for name in existing:
        if sha256(folder / name) != recorded[name]:
            raise InputError(f"{folder / name}: changed after it was written, as {FILE} beside it shows; put it back, "
                             f"or delete {folder} and make it again")
    return {name: recorded[name] for name in existing}


def compare(folder: Path, *names: str) -> Iterator[Step]:
    """Compare a folder's record with its seal, and those files of these names that exist with its digests."""
    if not (folder / FILE).exists():
        yield Step(folder / FILE, "its record", None, "no record")
        return
    try:
        record = _parsed(folder)
    except (OSError, ValueError):
        yield Step(folder / FILE, "its seal", None, "not readable")
        return
    yield Step(folder / FILE, "its seal", record.seal, record.found_seal)
    for name in names:
        file, recorded = folder / name, record.wrote.get(name)
        if recorded is not None or file.is_file():
            yield Step(file, "SHA-256, by its record", recorded, sha256(file) if file.is_file() else None)


def _parsed(folder: Path) -> Record:
    return Record.model_validate(parsing.from_json(regular.text(folder / FILE)))
