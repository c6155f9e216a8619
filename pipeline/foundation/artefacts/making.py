"""Making an artefact: one process at a time, resumed if it was interrupted, never half replaced."""

import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pipeline.foundation.artefacts import record as records
from pipeline.foundation.artefacts.artefact import Artefact
from pipeline.foundation.artefacts.code import changed, named
from pipeline.foundation.artefacts.record import Record, Reference
from pipeline.foundation.artefacts.request import Request
from pipeline.foundation.compute import made_with
from pipeline.foundation.files import atomic, streams
from pipeline.foundation.files.compared import MATCHES
from pipeline.foundation.parts.errors import InputError, InputWarning

IfChanged = Literal["refuse", "redo"]


@dataclass
class Draft:
    """An artefact that is being made."""

    # Where to write: the artefact's folder, or a successor that replaces it when it is finished
    folder: Path
    record: Record  # Its record, unfinished
    resumed: bool  # Whether the folder holds what an interrupted run wrote for the same request
    facts: dict[str, Any]  # What is recorded as `Record.facts`
    machine: Mapping[str, Any] = field(default_factory=dict)  # As for `making`
    # Of which files and folders digests are recorded; None for all. Those of a kind whose pieces
    # have digests of their own are the others.
    described: Sequence[str] | None = None

    @property
    def _made_with(self) -> dict[str, Any]:
        return made_with.record() | dict(self.machine)

    def save(self, **fields: Any) -> None:
        """Write the record with these fields and `facts`, so that an interrupted run can be
        resumed.
        """
        self.record = records.save(self.folder, self.record.changed(facts=self.facts, **fields))

    def takes_over(self, earlier: Record) -> None:
        """Record that pieces of an earlier artefact are in this one: its code and its machines."""
        machines = _after(earlier.machines, self._made_with)
        self.save(versions=dict(earlier.versions), machines=machines)

    def finish(self) -> None:
        """Record digests of what is in the folder, and that it is finished."""
        # How this process multiplies is chosen when a network is loaded, after the draft was begun.
        machines = [*self.record.machines[:-1], self._made_with]
        contents = records.contents(self.folder, self.described)
        self.save(contents=contents, finished=True, machines=machines)


@contextmanager
def making(
    folder: Path,
    request: Request,
    made_from: Mapping[str, Reference],
    machine: Mapping[str, Any] | None = None,
    *,
    if_changed: IfChanged = "redo",
    resume: bool = False,
) -> Iterator[Draft | None]:
    """Make an artefact, unless it is up to date. It is held for writing until the block ends.

    A finished artefact that is outdated stays as it is until the new one is finished, and then is
    replaced.

    Args:
        folder: Its folder.
        request: What it is made for.
        made_from: Role -> the artefact that it is made from.
        machine: What is recorded of this machine besides `compute.made_with.record`.
        if_changed: Whether an artefact of another request is refused or replaced. If only the code
            differs, "refuse" warns and keeps it, or resumes it.
        resume: Whether what an interrupted block wrote stays for the next call; else it is removed.

    Yields:
        The draft, whose folder the block fills; None if the artefact is up to date.
    """
    streams.refuse_occupied(folder)
    folder = streams.behind_links(folder)
    with atomic.exclusive(folder):
        atomic.put_back(folder)
        existing = Artefact.existing(folder)
        refuse_foreign(folder, request.kind)
        if is_kept(folder, request, made_from, if_changed):
            yield None
            return
        # One that an interrupted run may resume grows in its own folder, if that holds no finished
        # one.
        holds_finished = folder.exists()
        if existing:
            holds_finished = existing.record.finished
        in_place = resume and not holds_finished
        with drafting(
            folder,
            request,
            made_from,
            machine,
            in_place=in_place,
            if_changed=if_changed,
            resume=resume,
        ) as draft:
            yield draft


@contextmanager
def drafting(
    folder: Path,
    request: Request,
    made_from: Mapping[str, Reference],
    machine: Mapping[str, Any] | None = None,
    *,
    in_place: bool,
    if_changed: IfChanged = "redo",
    resume: bool = False,
    begin: Callable[[Path], object] = lambda folder: None,
) -> Iterator[Draft | None]:
    """Make an artefact that is held for writing and not up to date; the second half of `making`.

    Args:
        folder: Where it is to be.
        request: What it is asked to be.
        made_from: The artefacts that it is made from, by role.
        machine: What the record says of this machine.
        in_place: Whether it is made in its own folder; else in FOLDER.successor, which takes its
            place when it is finished.
        if_changed: Whether an unfinished one of another request is replaced, or refused.
        resume: Whether an unfinished one of this request is gone on with.
        begin: Fills a new draft's folder, which appears with what this wrote.

    Yields:
        The draft; None if an earlier process was killed when it had finished it.
    """
    successor = folder
    if not in_place:
        successor = folder.with_name(f"{folder.name}.successor")
    if _is_finished(successor, request, made_from):
        atomic.take_place(successor, folder)
        yield None
        return
    draft = None
    if resume:
        draft = _resumed(successor, request, made_from, machine or {}, if_changed)
    if draft is None:
        draft = _begun(successor, request, made_from, machine or {}, begin)
    try:
        yield draft
    except BaseException:
        if not resume:
            shutil.rmtree(successor, ignore_errors=True)
        raise
    draft.finish()
    if successor != folder:
        atomic.take_place(successor, folder)


def is_kept(
    folder: Path,
    request: Request,
    made_from: Mapping[str, Reference],
    if_changed: IfChanged = "redo",
) -> bool:
    """Whether `making` would leave a folder as it is; InputError if its record was edited or
    `if_changed` refuses.

    For those who ask before they load data. folder, request, made_from, if_changed: as there.
    """
    existing = Artefact.existing(folder)
    if existing is None:
        if if_changed == "refuse" and (folder / records.FILE).exists():
            records.require(folder)  # a damaged record: what was made is not thrown away
        return False
    outdated = existing.outdated(request, made_from)
    if outdated is None:
        return True
    if outdated.because == "unfinished" or if_changed == "redo":
        return False
    if outdated.because == "versions":
        warnings.warn(
            f"{folder}: {outdated.text}; --if-changed redo makes it again",
            InputWarning,
            stacklevel=4,
        )
        return True
    raise refusal(folder, outdated.text)


def refusal(folder: Path, difference: str) -> InputError:
    """The error for an artefact's folder and its difference from a request, if it is not replaced
    without permission.
    """
    return InputError(
        f"{folder}: {difference}; --if-changed redo replaces it, or keep both: --out, or another name"
    )


def _is_finished(folder: Path, request: Request, made_from: Mapping[str, Reference]) -> bool:
    existing = Artefact.existing(folder)
    return existing is not None and existing.outdated(request, made_from) is None


def refuse_foreign(folder: Path, kind: str) -> None:
    """Refuse to replace a folder that is no artefact, or one of another kind.

    Raises:
        InputError: If it is one.
    """
    existing = Artefact.existing(folder)
    if existing and existing.record.kind != kind:
        raise InputError(
            f"{folder}: exists and is {existing.record.kind}, not {kind}; move it, or choose another name"
        )
    if folder.exists() and not folder.is_dir():
        raise InputError(
            f"{folder}: exists and is a file, not {kind}; move it, or choose another name"
        )
    if not folder.is_dir() or (folder / records.FILE).exists():
        return
    names = sorted({*os.listdir(folder)} - {f"{records.FILE}.partial"})
    if names:
        raise InputError(
            f"{folder}: exists, holds {names[0]} and no {records.FILE}, and so is not {kind} of this "
            "pipeline; move it, or choose another name"
        )


def _resumed(
    folder: Path,
    request: Request,
    made_from: Mapping[str, Reference],
    machine: Mapping[str, Any],
    if_changed: IfChanged,
) -> Draft | None:
    """Take up an interrupted draft of the same request; None if there is none."""
    earlier = Artefact.existing(folder)
    if earlier is None:
        return None
    outdated = earlier.outdated(request, made_from)
    if outdated is None or outdated.because != "unfinished":
        return None
    parts = changed(earlier.record.versions, request.versions())
    if parts:
        if if_changed == "redo":
            return None
        warnings.warn(
            f"{folder}: was begun by other code ({named(parts)}); --if-changed redo makes it again",
            InputWarning,
            stacklevel=5,
        )
    current = made_with.record() | dict(machine)
    record = earlier.record.changed(machines=_after(earlier.record.machines, current))
    draft = Draft(folder, record, True, dict(record.facts), machine)
    draft.save()
    return draft


def _begun(
    folder: Path,
    request: Request,
    made_from: Mapping[str, Reference],
    machine: Mapping[str, Any],
    begin: Callable[[Path], object],
) -> Draft:
    """Begin anew in an empty folder."""
    record = Record(
        kind=request.kind,
        request=request.recorded(),
        made_from=dict(made_from),
        versions=dict(request.versions()),
        machines=[made_with.record() | dict(machine)],
    )
    with atomic.creating(folder) as empty:
        begin(empty)
        record = records.save(empty, record)
    return Draft(folder, record, False, {}, machine)


def _after(machines: list[dict[str, Any]], current: dict[str, Any]) -> list[dict[str, Any]]:
    """The machines that worked on an artefact, when this one works on it last."""
    if machines[-1:] == [current]:
        return machines
    return [*machines, current]


def made_today(
    request: Request, made_from: Mapping[str, Reference], facts: dict[str, Any]
) -> Record:
    """The finished record of a request, made_from these artefacts now, with facts; kept outside
    record.json.
    """
    return Record(
        kind=request.kind,
        request=request.recorded(),
        made_from=dict(made_from),
        facts=facts,
        versions=dict(request.versions()),
        machines=[made_with.today()],
        finished=True,
    )


def is_up_to_date(
    folder: Path, request: Request, made_from: Mapping[str, Reference] | None = None
) -> bool:
    """Whether the artefact in a folder is that of a request and of `made_from`, and its recorded
    contents, which are read, are unchanged.
    """
    existing = Artefact.existing(folder)
    if existing is None or existing.outdated(request, made_from or {}) is not None:
        return False
    return all(step.verdict == MATCHES for step in existing.verify())


def record_files(folder: Path, request: Request, files: Iterable[Path]) -> Record:
    """Return the record, saved in a folder, of small files that a command wrote there for a
    request.
    """
    contents = {os.path.relpath(file, folder): records.digest_of(file) for file in files}
    record = Record(
        kind=request.kind,
        request=request.recorded(),
        contents=contents,
        finished=True,
        versions=dict(request.versions()),
    )
    return records.save(folder, record)
