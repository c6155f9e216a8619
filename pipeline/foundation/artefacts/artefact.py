"""An artefact that exists, and the comparison with a request, or of its bytes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Self

from pipeline.foundation.artefacts import record as records
from pipeline.foundation.artefacts.code import changed, named
from pipeline.foundation.artefacts.record import FILE, Record, Reference
from pipeline.foundation.artefacts.request import Request, difference
from pipeline.foundation.files.compared import Step


class Outdated(NamedTuple):
    """Why an artefact is not what a request asks for."""

    # Which part of the record differs first.
    because: Literal["unfinished", "request", "made_from", "versions", "contents"]
    text: str  # The difference, for a message


@dataclass(frozen=True)
class Artefact:
    """A folder with a record."""

    folder: Path
    record: Record  # Its record, whose seal has been compared

    @classmethod
    def open(cls, folder: Path, *names: str) -> Self:
        """Open the artefact in a folder; *names: files or folders of its `contents` that are
        compared with digests.

        Raises:
            InputError: If it has no record, or if the record or one of these files was edited.
        """
        return cls(folder, records.require(folder, *names))

    @classmethod
    def existing(cls, folder: Path) -> Self | None:
        """Open the artefact in a folder; None if there is none, or a damaged record, so that it
        must be made.
        """
        try:
            records.load(folder)
        except (OSError, ValueError):
            return None
        return cls.open(folder)

    def outdated(self, request: Request, made_from: Mapping[str, Reference]) -> Outdated | None:
        """The first difference from a request and what it is made_from (role -> artefact); None if
        up to date.
        """
        record = self.record
        if record.kind != request.kind:
            return Outdated("request", f"is {record.kind}, not {request.kind}")
        different = difference(record.request, request.recorded())
        if different:
            return Outdated("request", different)
        role = self.other_input(made_from)
        if role:
            if role not in record.made_from:
                return Outdated("made_from", f"its {role} {made_from[role].name} is new")
            reference = made_from.get(role, record.made_from[role])
            return Outdated("made_from", f"its {role} {reference.name} is another")
        if not record.finished:
            return Outdated("unfinished", "is not finished")
        parts = changed(record.versions, request.versions())
        if parts:
            return Outdated("versions", f"was made by other code ({named(parts)})")
        for name in record.contents:
            if not (self.folder / name).exists():
                return Outdated("contents", f"has lost {name}")
        return None

    def other_input(self, made_from: Mapping[str, Reference]) -> str | None:
        """The first role whose artefact is another one in `made_from` than it was made from; None
        if all are equal.
        """
        before = self.record.made_from
        for role in sorted({*before, *made_from}):
            if role not in before or role not in made_from:
                return role
            if before[role].identity != made_from[role].identity:
                return role
        return None

    def verify(self, *names: str) -> Iterator[Step]:
        """The comparisons of the record with its seal, and of contents (these names, or all) with
        their digests.
        """
        yield from verify(self.folder, *(names or self.record.contents))


def verify(folder: Path, *names: str) -> Iterator[Step]:
    """Compare a folder's record with its seal, and those contents of these names that exist with
    their digests.
    """
    file = folder / FILE
    try:
        record = records.load(folder)
    except FileNotFoundError:
        yield Step(file, "its record", None, "no record")
        return
    except (OSError, ValueError):
        yield Step(file, "its seal", None, "not readable")
        return
    yield Step(file, "its seal", record.seal, record.computed_seal)
    for name in names:
        known_names = records.below(record, name)
        if not known_names and (folder / name).exists():
            known_names = [name]
        for known in known_names:
            path = folder / known
            digest = None
            if path.exists():
                digest = records.digest_of(path)
            yield Step(path, "SHA-256, by its record", record.contents.get(known), digest)
