"""Plan how a store comes to hold the wanted ids, and do it: create the store, resume it, grow it or
replace it.

A store is an artefact whose pieces are shards. It has a row for each id, in the manifest's order.
When ids come or go, or their files or texts are replaced, another artefact is made of the same
request: shards that are the same in both are linked. The others are written anew: rows that the
store has are copied, and only the others are computed. Nothing is lost if a process is killed.

Of a store of another data set at the path, in the same way, the rows that were made from wanted
photographs or captions are taken, and so are those of one whose description is lost.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation import artefacts
from pipeline.foundation.artefacts import Artefact, Record, Reference, Versions, record as records
from pipeline.foundation.artefacts.making import IfChanged
from pipeline.foundation.files import blake
from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.make.features.store import layout as layouts, ledger, shard_file, verify
from pipeline.make.features.store.layout import (
    ABSENT,
    FeaturesRequest,
    StoreError,
    StoreLayout,
    find,
    maker,
    read_header,
)

TOGETHER = 4096  # files at once


@dataclass(frozen=True)
class Wanted:
    """The images, clips or captions that a store must hold."""

    ids: np.ndarray  # Int64 [M], of all of the manifest
    sizes: np.ndarray  # Int64 [M], bytes of their files or texts, by the manifest
    fingerprint: Mapping[str, Any]  # All that the values depend on
    # Sizes of a store that is created for all M ids. An existing store keeps its shards and
    # compressor.
    layout: StoreLayout
    # Gives the files of some of the M ids, which are compared with those that features were made
    # from; None if features were not made from files, or if the manifest's checksums alone are
    # compared.
    files: Callable[[Sequence[int]], list[GalleryFile]] | None = None
    # The M checksums of files or texts by the manifest, "" where it has none; None if it has none
    # at all.
    checksums: np.ndarray | None = None
    # When the manifest was written, in nanoseconds: its checksums of files that changed later are
    # out of date.
    written: int = 0
    # Bool [M], ids to extract now; None for all. The others keep the rows that they have.
    chosen: np.ndarray | None = None
    grows: bool = False  # Whether a store of other ids is grown; else it counts as another store
    # Whether the features depend only on a file's or text's content, so that what gets another id
    # keeps its row.
    by_content: bool = False
    retry_failed: bool = False  # Whether failed rows are extracted again
    # The code that makes the features; {} if another code base made them.
    versions: Versions = field(default_factory=dict)

    def request(self, versions: Versions) -> FeaturesRequest:
        """Return what the store is asked for, made by code of these versions."""
        made = layouts.made_by(self.fingerprint)
        return FeaturesRequest(made=made, row=self.layout.row(), made_by=dict(versions))

    @property
    def made_from(self) -> dict[str, Reference]:
        """What the store is made from, for its record."""
        return layouts.made_from(self.fingerprint, self.layout)


@dataclass(frozen=True)
class Plan:
    """What is to be done so that a store holds the wanted ids."""

    # how the existing store differs, "" if it does not; if it does, the user must allow to replace
    # it
    changed: str
    layout: StoreLayout  # the sizes that the store gets
    ids: np.ndarray  # int64 [I], the id of each row
    pending: list[int]  # the shards to write; the others stay as they are
    # int64 [I], the row of the existing store that holds each row; ABSENT for one to compute
    rows_there: np.ndarray
    # whether a folder must be created first; False if the store has these sizes and ids already
    new: bool
    # ledger entries whose files were compared and are the same
    compared: Sequence[Path] = ()

    @property
    def kept(self) -> list[int]:
        """The shards that stay as they are."""
        return sorted({*range(self.layout.shards)} - {*self.pending})

    @property
    def keeps(self) -> bool:
        """Whether what the existing store has becomes part of the store."""
        return bool((self.rows_there != ABSENT).any())

    @property
    def computed(self) -> np.ndarray:
        """The rows to compute, int64, ascending."""
        places = [self.layout.places(shard) for shard in self.pending]
        rows = np.concatenate([np.arange(0), *places])
        return rows[self.rows_there[rows] == ABSENT]

    @property
    def count(self) -> int:
        """How many rows are to be computed."""
        return len(self.computed)

    def places_of_rows(self, ids: np.ndarray) -> np.ndarray:
        """The place of each row's id in the ids, int64 [I]; ABSENT for a row without one of these
        [M].
        """
        rows = find(self.ids, ids)
        has_row = rows != ABSENT
        place_of_row = np.full(self.layout.total, ABSENT)
        place_of_row[rows[has_row]] = np.flatnonzero(has_row)
        return place_of_row


def plan(path: Path, wanted: Wanted) -> Plan:
    """The work that makes the store at a path, which need not exist, the wanted one. Nothing is
    written.
    """
    if not path.exists():
        return at_once(wanted)
    if layouts.is_undescribed(path):
        return _described_again(path, wanted)
    try:
        layout, made = read_header(path)
    except StoreError as error:
        # The refusal of the store begins with its path, too.
        difference = str(error).removeprefix(str(path)).lstrip(":/ ")
        return at_once(wanted, difference)
    outdated = Artefact.open(path).outdated(wanted.request({}), wanted.made_from)
    same_ids = outdated is None or outdated.because != "made_from"
    if outdated and (outdated.because == "request" or not (same_ids or wanted.grows)):
        return at_once(wanted, outdated.text)
    existing = _Existing(path, layout)
    if made.get("dataset") != wanted.fingerprint.get("dataset"):
        return _of_another_data_set(existing, wanted)
    return _continued(existing, wanted, same_ids)


@contextmanager
def making(
    path: Path,
    wanted: Wanted,
    todo: Plan,
    if_changed: IfChanged = "refuse",
    origin: Path | None = None,
) -> Iterator[tuple[Path, Plan]]:
    """Prepare a store for the shards that must be written. Call it inside `exclusive`.

    The store at a path stays as it is until its successor is complete. An unfinished successor is
    resumed. todo: what `plan` gave for what is wanted. if_changed: for an existing store that
    differs. origin: the store whose features are written, if there is one.

    Yields:
        Where to write, the store or STORE.successor; and what is left to do there.

    Raises:
        InputError: If there is something else, or a store that differs and is not to be replaced.
    """
    if todo.changed:
        if not layouts.has_ledger(path):
            artefacts.refuse_foreign(path, layouts.KIND)
        if if_changed == "refuse":
            raise artefacts.refusal(path, todo.changed)
    path = path.resolve()
    replaces = todo.new and path.exists()
    if not todo.new:
        _note_compared(todo)
        if not todo.pending:
            yield path, todo
            return
        records.update(path, finished=False)
        _remove_leftovers(path)
    elif replaces:
        todo = _with_begun(path.with_name(path.name + ".successor"), wanted, todo)
    before = None
    versions = wanted.versions
    taken_from = origin or path
    if (origin is not None or todo.keeps) and not layouts.is_undescribed(taken_from):
        before = records.require(taken_from)
        versions = before.versions

    def begin(folder: Path) -> None:
        layouts.create(folder, todo.layout, todo.ids)
        _link_shards(path, folder, todo, maker(wanted.fingerprint))

    with artefacts.drafting(
        path,
        wanted.request(versions),
        wanted.made_from,
        layouts.libraries(),
        in_place=not replaces,
        if_changed=if_changed,
        resume=True,
        begin=begin,
    ) as draft:
        if draft is None:
            yield path, replace(todo, pending=[])
            return
        draft.described = layouts.described(todo.layout)
        if before is not None and not draft.resumed:
            if origin is not None:
                draft.facts.update(_facts(before, draft.record))
            draft.takes_over(before)
        elif before is None and todo.count == todo.layout.total:
            draft.save(versions=dict(wanted.versions))
        yield draft.folder, todo


def _facts(before: Record, record: Record) -> dict[str, Any]:
    """What is known of a store and stays true when it is rewritten."""
    if (before.request, before.made_from) == (record.request, record.made_from):
        return before.facts
    # Of another dtype, or of other images, it is not what was asked.
    return {key: fact for key, fact in before.facts.items() if key != "asked"}


def _note_compared(todo: Plan) -> None:
    """Note in the ledger's times that photographs were compared now."""
    for entry in todo.compared:
        try:
            os.utime(entry)
        except OSError:  # a medium that cannot be written; they are compared again next time
            return


def _with_begun(successor: Path, wanted: Wanted, todo: Plan) -> Plan:
    """What is left to do of a plan where an interrupted run began it; one that began another is
    removed.
    """
    if not successor.exists():
        return todo
    begun = plan(successor, wanted)
    if begun.changed or begun.new or begun.layout != todo.layout:
        shutil.rmtree(successor)
        return todo
    _remove_leftovers(successor)
    return replace(todo, pending=begun.pending)


def _remove_leftovers(store: Path) -> None:
    """Remove what a process that was killed had begun to write."""
    for leftover in store.rglob("*.partial*"):
        leftover.unlink()


def _link_shards(source: Path, making: Path, todo: Plan, made_by: str) -> None:
    """Link the kept shards into a store that is being created."""
    layout = todo.layout
    for shard in todo.kept:
        files = [shard_file.file_of(Path(), layout, name, shard) for name in layout.arrays()]
        entry = ledger.read(source, shard)
        if entry is not None and entry.maker != made_by:  # of another data set's store
            ledger.write(making, replace(entry, maker=made_by))
        else:
            files.append(ledger.file(Path(), shard))
        for file in files:
            (making / file).parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(source / file, making / file)
            except OSError:  # a file system without links
                shutil.copy2(source / file, making / file)


def at_once(wanted: Wanted, changed: str = "") -> Plan:
    """Plan a new store of only the chosen ids, in their order."""
    ids = wanted.ids
    if wanted.chosen is not None:
        ids = ids[wanted.chosen]
    layout = replace(wanted.layout, total=len(ids))
    every_shard = list(range(layout.shards))
    return Plan(changed, layout, ids, every_shard, np.full(len(ids), ABSENT), new=True)


class _Existing:
    """What the ledger of an existing store says of each row: arrays [I]."""

    def __init__(
        self, path: Path, layout: StoreLayout, entries: list[ledger.LedgerEntry] | None = None
    ) -> None:
        self.path = path
        self.layout = layout
        self.finished = np.zeros(layout.total, bool)
        self.failed = np.zeros(layout.total, bool)
        self.sizes = np.zeros(layout.total, np.int64)  # bytes of its file
        self.written = np.zeros(layout.total, np.int64)  # when its entry was written
        self.checksums = np.full(layout.total, "", object)  # of its file, "" where none is known
        if entries is None:
            entries = ledger.entries(path, layout)
        for entry in entries:
            rows = layout.rows(entry.shard)
            here = slice(rows.start, rows.stop)
            self.finished[here] = True
            self.sizes[here] = ledger.file_sizes(path, entry, layout)
            self.written[here] = ledger.file(path, entry.shard).stat().st_mtime_ns
            self.failed[[row for row in entry.failed if row in rows]] = True
            known = [row for row in entry.sources if row in rows]
            self.checksums[known] = [entry.sources[row] for row in known]


def _continued(existing: _Existing, wanted: Wanted, same_ids: bool) -> Plan:
    """Resume a store of the same ids, or make it hold others."""
    layout = existing.layout
    ids = ledger.column(existing.path, "ids")
    named = find(ids, wanted.ids)
    checksums = _checksums(named, existing, wanted, same_ids)
    known = np.flatnonzero((named != ABSENT) & existing.finished[named])
    held_rows = named[known]
    is_compared = checksums[known] != ""
    other_content = is_compared & (checksums[known] != existing.checksums[held_rows])
    other_size = ledger.other_files(existing.sizes[held_rows], wanted.sizes[known])
    is_other = other_size | other_content
    wrong = np.where(existing.failed[held_rows], wanted.retry_failed, is_other)
    rows = np.full(len(wanted.ids), ABSENT)  # of the ids whose features are right
    rows[known[~wrong]] = held_rows[~wrong]
    if wanted.by_content and not same_ids:
        _find_by_content(rows, checksums, existing.checksums)
    changed = ""
    if wrong.any() and not wanted.grows:
        changed = f"row {held_rows[wrong][0]} is of another file now"
    used = int((rows != ABSENT).sum()) + int(wrong.sum())
    lost = int(existing.finished.sum()) - used
    if wanted.grows and 2 * lost > layout.total:
        changed = f"{lost:,} of its {layout.total:,} {layout.kind} are not in the manifest"
    todo = _arranged(existing, ids if same_ids else None, wanted, rows, changed)
    if todo.new:
        return todo
    compared = held_rows[~wrong & is_compared]
    shards = np.unique(compared // layout.shard_rows)
    files = [ledger.file(existing.path, shard) for shard in shards.tolist()]
    return replace(todo, compared=files)


def _of_another_data_set(existing: _Existing, wanted: Wanted) -> Plan:
    """Take the rows of another data set's store that were made from the wanted photographs or
    captions.
    """
    if wanted.checksums is not None and any(wanted.checksums):
        todo = _by_content(existing, wanted)
        if todo is not None:
            return todo
    dataset = wanted.fingerprint.get("dataset")
    return at_once(wanted, f"its {wanted.layout.kind} are not those of {dataset}")


def _described_again(path: Path, wanted: Wanted) -> Plan:
    """Take the shards of a store without a description that are whole, with the wanted sizes and
    maker.
    """
    count = len(wanted.ids)
    if wanted.chosen is not None:
        count = int(wanted.chosen.sum())
    layout = replace(wanted.layout, total=count)
    made_by = maker(wanted.fingerprint)
    entries = ledger.readable(path, layout)
    whole = []
    for shard, entry in entries.items():
        if not any(verify.faults_of(path, layout, made_by, shard)):
            whole.append(entry)
    todo = _by_content(_Existing(path, layout, whole), wanted)
    if todo is not None and todo.kept:
        return _without_copies(todo)
    changed = ""
    if entries:
        changed = "zarr.json is lost, and no shard is whole and of these settings"
    return at_once(wanted, changed)


def _by_content(existing: _Existing, wanted: Wanted) -> Plan | None:
    """Take the rows that were made from the wanted photographs or captions; None if there are
    none.
    """
    rows = np.full(len(wanted.ids), ABSENT)
    if wanted.by_content:
        checksums = _checksums(rows, existing, wanted, same_ids=False)
        _find_by_content(rows, checksums, existing.checksums)
    if (rows == ABSENT).all():
        return None
    return _arranged(existing, None, wanted, rows)


def _arranged(
    existing: _Existing,
    ids: np.ndarray | None,
    wanted: Wanted,
    rows: np.ndarray,
    changed: str = "",
) -> Plan:
    """Plan the store of the chosen ids and of those that have a row, in the order of the wanted.

    ids: those of the existing store, None if it is of another manifest. rows: int64 [M], the
        finished row of each wanted id there; ABSENT for one to compute.
    """
    before = existing.layout
    selected = np.ones(len(rows), bool)
    if wanted.chosen is not None:
        selected = wanted.chosen | (rows != ABSENT)
    new_ids = wanted.ids[selected]
    rows_there = rows[selected]
    same_ids = ids is not None and np.array_equal(new_ids, ids)
    # One shard was cut to the images that there were; several have the size that they were given.
    shard_rows = wanted.layout.shard_rows
    if same_ids or before.shards > 1:
        shard_rows = before.shard_rows
    layout = replace(before, total=len(new_ids), shard_rows=shard_rows)
    shards = range(layout.shards)
    pending = [shard for shard in shards if not _stays(layout, before, rows_there, shard)]
    is_begun = [existing.finished[before.places(shard)].any() for shard in pending]
    is_resumed = same_ids and not any(is_begun)
    return Plan(changed, layout, new_ids, pending, rows_there, new=not is_resumed)


def _without_copies(todo: Plan) -> Plan:
    """Compute all rows of the shards that are written: rows are copied by a store's description."""
    rows_there = todo.rows_there.copy()
    for shard in todo.pending:
        rows_there[todo.layout.places(shard)] = ABSENT
    return replace(todo, rows_there=rows_there)


def _stays(layout: StoreLayout, before: StoreLayout, rows_there: np.ndarray, shard: int) -> bool:
    """Whether a shard has the same rows as the existing store's shard of this number."""
    if layout.shard_rows != before.shard_rows or shard >= before.shards:
        return False
    places = layout.places(shard)
    return layout.rows(shard) == before.rows(shard) and np.array_equal(rows_there[places], places)


def _checksums(rows: np.ndarray, existing: _Existing, wanted: Wanted, same_ids: bool) -> np.ndarray:
    """The checksum of each id's file or text as it is now, str [M]; "" where it is not needed or
    not known.
    """
    # In a changed manifest an id may name another file, so all are compared: by the manifest's
    # checksum if the file did not change since, else by reading the file. In the same manifest,
    # files are read only if the manifest's checksum differs, or if they changed after their shard
    # was written. The system sets a file's change time, also when another file of the same size
    # takes its place.
    checksums = np.full(len(rows), "", object)
    recorded = wanted.checksums
    if wanted.files is None:
        if recorded is None:
            return checksums
        is_compared = (existing.checksums[rows] != "") | (not same_ids)
        return np.where(is_compared, recorded, "")
    if recorded is None:
        recorded = checksums.copy()
    with ThreadPoolExecutor() as threads:  # hashing releases Python's lock
        for first in range(0, len(rows), TOGETHER):
            batch = range(first, min(first + TOGETHER, len(rows)))
            to_read: dict[int, GalleryFile] = {}
            for place, file in zip(batch, wanted.files(batch), strict=True):
                row = rows[place]
                known = recorded[place]
                try:
                    changed = file.changed_at() or 0
                except OSError:  # lost since; the features are right
                    continue
                if not same_ids:
                    if known and changed <= wanted.written:
                        checksums[place] = known
                    else:
                        to_read[place] = file
                    continue
                before = existing.checksums[row] if row != ABSENT else ""
                if before and (known not in ("", before) or changed > existing.written[row]):
                    to_read[place] = file
            read = threads.map(blake.if_there, to_read.values())
            for place, checksum in zip(to_read, read, strict=True):
                checksums[place] = checksum
    return checksums


def _find_by_content(row_of_id: np.ndarray, checksums: np.ndarray, recorded: np.ndarray) -> None:
    """Give each id without a row an unused row that was made from the same bytes."""
    unused = recorded != ""
    unused[row_of_id[row_of_id != ABSENT]] = False
    free: dict[str, list[int]] = {}
    for row in np.flatnonzero(unused)[::-1].tolist():
        free.setdefault(recorded[row], []).append(row)
    without_row = (row_of_id == ABSENT) & (checksums != "")
    for place in np.flatnonzero(without_row).tolist():
        rows = free.get(checksums[place])
        if rows:
            row_of_id[place] = rows.pop()
