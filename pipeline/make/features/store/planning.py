"""Plan how a store comes to hold the wanted ids, and do it: create the store, resume it, grow it or
replace it.

A store has a row for each id, in the manifest's order. When ids come or go, or their files or
texts are replaced, a successor is made beside the store, and replaces it when it is complete.
Shards that are the same in both are linked. The others are written anew: rows that the store has
are copied, and only the others are computed. Nothing is lost if a process is killed.

Of a store of another data set at the path, in the same way, the rows that were made from wanted
photographs or captions are taken, and so are those of one whose description is lost.
"""

import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation.artefacts import Record, Versions, record as records
from pipeline.foundation.artefacts.request import difference
from pipeline.foundation.files import atomic, blake
from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.make.features.store import layout as layouts, ledger, shard_file, verify
from pipeline.make.features.store.item_format import IMPLIED
from pipeline.make.features.store.layout import (
    ABSENT,
    StoreError,
    StoreLayout,
    find,
    maker,
    read_header,
)

# The keys of a fingerprint that name the ids; the others say what makes their features.
OF_IDS = ("ids", "dataset")
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
    dataset: str = ""  # The manifest's data set, where a store grows
    # The code that makes the features; {} if another code base made them.
    versions: Versions = field(default_factory=dict)


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
        rows, place_of_row = find(self.ids, ids), np.full(self.layout.total, ABSENT)
        place_of_row[rows[rows != ABSENT]] = np.flatnonzero(rows != ABSENT)
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
        layout, made_from = read_header(path)
    except StoreError as error:
        return at_once(wanted, str(error))
    changed = differs(made_from, wanted.fingerprint, OF_IDS if wanted.grows else ())
    # What a row has in the store is compared, not how rows are divided into shards and compressed.
    expected = replace(
        wanted.layout,
        shard_rows=layout.shard_rows,
        compressor=layout.compressor,
        total=layout.total,
    )
    if not changed and expected != layout:
        changed = f"layout was {layout}, is {expected}"
    if changed:
        return at_once(wanted, changed)
    existing = _Existing(path, layout)
    if wanted.grows and made_from.get("dataset") != wanted.dataset:
        return _of_another_data_set(existing, wanted)
    return _continued(existing, wanted, made_from.get("ids") == wanted.fingerprint.get("ids"))


@contextmanager
def making(
    path: Path,
    wanted: Wanted,
    todo: Plan,
    if_changed: str = "refuse",
    origin: Path | None = None,
) -> Iterator[tuple[Path, Plan]]:
    """Prepare a store for the shards that must be written. Call it inside `exclusive`.

    The store at a path stays as it is until its successor is complete. An unfinished successor is
    resumed. todo: what `plan` gave for what is wanted. if_changed: "refuse" or "redo" for an
    existing store that differs. origin: the store whose features are written, if there is one.

    Yields:
        Where to write, the store or STORE.successor; and what is left to do there.
    """
    if todo.changed:
        _refuse(path, todo.changed, if_changed)
    path = path.resolve()
    replaced = todo.new and path.exists()
    store = path.with_name(path.name + ".successor") if replaced else path
    begun = plan(store, wanted) if replaced and store.exists() else None
    resumes = begun is not None and not (begun.changed or begun.new)
    if begun is not None and resumes and begun.layout == todo.layout:
        todo = replace(todo, pending=begun.pending)
        _remove_leftovers(store)
    elif todo.new:
        keeps = bool((todo.rows_there != ABSENT).any())
        layouts.create(
            store,
            todo.layout,
            wanted.fingerprint,
            todo.ids,
            lambda making: _link_shards(path, making, todo, maker(wanted.fingerprint)),
            _record(wanted, path if keeps else None, origin),
        )
    else:
        if todo.pending:
            _remove_leftovers(store)
        for entry in todo.compared:
            try:
                os.utime(entry)
            except (
                OSError
            ):  # a medium that cannot be written; the files are compared again next time
                break
    yield store, todo
    if replaced:
        atomic.take_place(store, path)


def _remove_leftovers(store: Path) -> None:
    """Remove what a process that was killed had begun to write."""
    for leftover in store.rglob("*.partial*"):
        leftover.unlink()


def _refuse(path: Path, changed: str, if_changed: str) -> None:
    """Refuse to replace a store without permission, and anything that is no feature store of any
    version.
    """
    try:
        is_store = {"fingerprint_digest", "layout"} <= layouts.attributes(path).keys()
    except StoreError:
        is_store = layouts.is_undescribed(path)
    if not is_store:
        raise StoreError(f"{path}: exists and is not a feature store; choose another --out")
    if if_changed == "refuse":
        raise StoreError(
            f"{path}: was made with other settings ({changed}); choose another --out, or --if-changed "
            "redo to replace it"
        )


def _record(wanted: Wanted, keeps_of: Path | None, origin: Path | None) -> Record:
    """The record of a new store: of this code and machine, or of those that made what it keeps, or
    all of `origin`.
    """
    if origin is not None:
        return records.require(origin).changed(contents={}, finished=False)
    if keeps_of is None or layouts.is_undescribed(keeps_of):
        return Record(
            kind=layouts.KIND, versions=dict(wanted.versions), machines=[layouts.machine()]
        )
    before = records.require(keeps_of)
    return Record(kind=layouts.KIND, versions=before.versions, machines=before.machines)


def _link_shards(source: Path, making: Path, todo: Plan, made_by: str) -> None:
    """Link the kept shards into a store that is being created."""
    for shard in todo.kept:
        files = [
            shard_file.file_of(Path(), todo.layout, name, shard) for name in todo.layout.arrays()
        ]
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


def differs(
    made_from: Mapping[str, Any], fingerprint: Mapping[str, Any], ignored: Collection[str] = ()
) -> str:
    """The first difference of two fingerprints in words, "" if they differ in nothing but ignored
    keys.
    """
    before, wanted = (
        {key: value for key, value in {**IMPLIED, **made}.items() if key not in ignored}
        for made in (made_from, fingerprint)
    )
    maker = {
        key: wanted[key] for key in ("engine", "format") if key in wanted
    }  # the first that is named
    return difference(before, maker | dict(wanted)) or ""


def at_once(wanted: Wanted, changed: str = "") -> Plan:
    """Plan a new store of only the chosen ids, in their order."""
    ids = wanted.ids if wanted.chosen is None else wanted.ids[wanted.chosen]
    layout = replace(wanted.layout, total=len(ids))
    return Plan(changed, layout, ids, list(range(layout.shards)), np.full(len(ids), ABSENT), True)


class _Existing:
    """What the ledger of an existing store says of each row: arrays [I]."""

    def __init__(
        self, path: Path, layout: StoreLayout, entries: list[ledger.LedgerEntry] | None = None
    ) -> None:
        self.path, self.layout = path, layout
        self.entries = ledger.entries(path, layout) if entries is None else entries
        self.finished, self.failed = np.zeros((2, layout.total), bool)
        self.sizes, self.written = np.zeros(
            (2, layout.total), np.int64
        )  # bytes of its file; its entry's mtime
        self.checksums = np.full(layout.total, "", object)  # of its file, "" where none is known
        for entry in self.entries:
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
    other_content = (checksums[known] != "") & (checksums[known] != existing.checksums[held_rows])
    other_size = ledger.other_files(existing.sizes[held_rows], wanted.sizes[known])
    wrong = np.where(existing.failed[held_rows], wanted.retry_failed, other_size | other_content)
    rows = np.full(len(wanted.ids), ABSENT)  # of the ids whose features are right
    rows[known[~wrong]] = held_rows[~wrong]
    if wanted.by_content and not same_ids:
        _find_by_content(rows, checksums, existing.checksums)
    changed = ""
    if wrong.any() and not wanted.grows:
        changed = f"row {held_rows[wrong][0]} is of another file now"
    lost = int(existing.finished.sum()) - int((rows != ABSENT).sum()) - int(wrong.sum())
    if wanted.grows and 2 * lost > layout.total:
        changed = f"{lost:,} of its {layout.total:,} {layout.kind} are not in the manifest"
    todo = _arranged(existing, ids if same_ids else None, wanted, rows, changed)
    compared = held_rows[~wrong & (checksums[known] != "")] // layout.shard_rows
    files = [ledger.file(existing.path, shard) for shard in np.unique(compared).tolist()]
    return todo if todo.new else replace(todo, compared=files)


def _of_another_data_set(existing: _Existing, wanted: Wanted) -> Plan:
    """Take the rows of another data set's store that were made from the wanted photographs or
    captions.
    """
    known = wanted.checksums is not None and any(wanted.checksums)
    todo = _by_content(existing, wanted) if known else None
    return todo or at_once(wanted, f"ids: of another data set than {wanted.dataset}")


def _described_again(path: Path, wanted: Wanted) -> Plan:
    """Take the shards of a store without a description that are whole, with the wanted sizes and
    maker.
    """
    count = len(wanted.ids) if wanted.chosen is None else int(wanted.chosen.sum())
    layout = replace(wanted.layout, total=count)
    made_by = maker(wanted.fingerprint)
    entries = ledger.readable(path, layout)
    whole = [
        entry
        for shard, entry in entries.items()
        if not any(verify.faults_of(path, layout, made_by, shard))
    ]
    todo = _by_content(_Existing(path, layout, whole), wanted)
    if todo is not None and todo.kept:
        return _without_copies(todo)
    others = "zarr.json is lost, and no shard is whole and of these settings" if entries else ""
    return at_once(wanted, others)


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
    shard_rows = before.shard_rows if same_ids or before.shards > 1 else wanted.layout.shard_rows
    layout = replace(before, total=len(new_ids), shard_rows=shard_rows)
    kept = [shard for shard in range(layout.shards) if _stays(layout, before, rows_there, shard)]
    pending = sorted({*range(layout.shards)} - {*kept})
    is_resumed = same_ids and not any(
        existing.finished[before.places(shard)].any() for shard in pending
    )
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
    if wanted.files is None:
        compared = (existing.checksums[rows] != "") | (not same_ids)
        return checksums if wanted.checksums is None else np.where(compared, wanted.checksums, "")
    with ThreadPoolExecutor() as threads:  # hashing releases Python's lock
        for first in range(0, len(rows), TOGETHER):
            batch = range(first, min(first + TOGETHER, len(rows)))
            recorded = (
                len(batch) * [""]
                if wanted.checksums is None
                else wanted.checksums[first : batch.stop].tolist()
            )
            read = []
            for place, file, known in zip(batch, wanted.files(batch), recorded, strict=True):
                row = rows[place]
                try:
                    changed = file.changed_at() or 0
                except OSError:  # lost since; the features are right
                    continue
                before = existing.checksums[row] if row != ABSENT else ""
                if not same_ids and known and changed <= wanted.written:
                    checksums[place] = known
                elif not same_ids or (
                    before and (known not in ("", before) or changed > existing.written[row])
                ):
                    read.append((place, file))
            for (place, _), checksum in zip(
                read, threads.map(blake.if_there, [file for _, file in read]), strict=True
            ):
                checksums[place] = checksum
    return checksums


def _find_by_content(row_of_id: np.ndarray, checksums: np.ndarray, recorded: np.ndarray) -> None:
    """Give each id without a row an unused row that was made from the same bytes."""
    unused = recorded != ""
    unused[row_of_id[row_of_id != ABSENT]] = False
    free: dict[str, list[int]] = {}
    for row in np.flatnonzero(unused)[::-1].tolist():
        free.setdefault(recorded[row], []).append(row)
    for place in np.flatnonzero((row_of_id == ABSENT) & (checksums != "")).tolist():
        if rows := free.get(checksums[place]):
            row_of_id[place] = rows.pop()
