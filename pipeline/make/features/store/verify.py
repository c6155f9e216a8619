"""Check a store's files against its ledger, and digest what the ledger records.

The digest is made of one digest per row, so it stays the same when a store grows, is compacted, or
is rewritten with another compressor or shard size.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from pipeline.foundation.artefacts import artefact
from pipeline.foundation.files.compared import Step
from pipeline.foundation.files.digest import digest, digest_of_rows
from pipeline.make.features.store import layout as layouts, ledger, shard_file
from pipeline.make.features.store.layout import (
    DONE,
    FAILED,
    StoreError,
    StoreLayout,
    maker,
    read_header,
)

AT_ONCE = 8  # shards in memory


def description(path: Path, layout: StoreLayout) -> Iterator[Step]:
    """Compare the files that describe a store with its record: zarr.json, the arrays' metadata,
    ids, failures.csv.
    """
    yield from artefact.verify(path, *layouts.described(layout))


def verify(path: Path, workers: int = 1) -> Iterator[tuple[int, list[str]]]:
    """Check each shard: its ledger entry, checksums, counts, status, and that all values are
    finite.
    """
    layout, fingerprint = read_header(path)
    if ledger.of_another_store(path, layout, fingerprint):
        raise StoreError(
            f"{path}: record.json is of another store than the shards, as their ledger says"
        )
    made_by = maker(fingerprint)

    def faults(shard: int) -> list[str]:
        return list(faults_of(path, layout, made_by, shard))

    with ThreadPoolExecutor(workers) as threads:  # hashing releases Python's lock
        yield from enumerate(threads.map(faults, range(layout.shards)))


def faults_of(path: Path, layout: StoreLayout, made_by: str, shard: int) -> Iterator[str]:
    """Find what is wrong with a shard that has these sizes and was made by `layout.maker`."""
    try:
        entry = ledger.read(path, shard)
    except StoreError:
        yield "its ledger entry is not readable, or edited"
        return
    if entry is None:
        yield "not extracted yet"
        return
    rows = layout.rows(shard)
    strange = [row for row in entry.failed if row not in rows]
    if strange:
        yield f"its ledger entry tells of row {strange[0]}, which is of another shard"
        return
    if (entry.shard, entry.first, entry.rows) != (shard, rows.start, len(rows)):
        yield f"its ledger entry is of rows {entry.first} to {entry.first + entry.rows - 1}"
        return
    if entry.maker != made_by:
        yield "is another store's, by its ledger entry"
        return
    contents = shard_file.read(path, layout, shard)
    unchanged = {}
    all_unchanged = True
    for name, checksum in contents.checksums.items():
        is_unchanged = checksum == entry.checksums.get(name)
        all_unchanged = all_unchanged and is_unchanged
        if not checksum:
            yield f"{name}: its file is missing"
        elif not is_unchanged:
            yield f"{name}: its bytes have changed since they were written"
        elif name not in contents.arrays:
            yield f"{name}: its file lacks rows, though its checksum is right"
        if is_unchanged and name in contents.arrays:
            unchanged[name] = contents.arrays[name]
    yield from impossible(layout, rows, unchanged, entry.failed)
    if all_unchanged and entry.values != contents.values:
        yield "its rows' digests in the ledger are not those of its values"


def impossible(
    layout: StoreLayout, rows: range, arrays: Mapping[str, np.ndarray], failed: Collection[int]
) -> Iterator[str]:
    """Find values that no shard can have."""
    lacking = np.isin(np.arange(rows.start, rows.stop), list(failed))
    for name, values in arrays.items():
        if values.dtype.kind == "f" and not shard_file.all_finite(values):
            is_finite = np.isfinite(values).reshape(len(values), -1).all(axis=1)
            bad = rows.start + int(np.argmin(is_finite))
            yield f"{name}: row {bad} has values that are not finite"
        if name == "status" and not np.array_equal(values, np.where(lacking, FAILED, DONE)):
            yield "status: does not agree with the ledger's failures"
        if name == "counts":
            has_items = (values >= 1) & (values <= layout.items)
            if (has_items == lacking).any():
                yield f"counts: expected 1 to {layout.items} items, or 0 for failed rows"


def content(path: Path, rows: np.ndarray) -> str:
    """Digest (SHA-256) dtype, and id, digest and source's checksum of each row, int64 [B], without
    reading features.
    """
    layout, _ = read_header(path)
    values = np.full(len(rows), None, np.dtypes.StringDType(na_object=None))
    sources = values.copy()
    shard_of_row = rows // layout.shard_rows
    order = np.argsort(shard_of_row, kind="stable")
    shards = shard_of_row[order]
    # One by one: those of a million rows would fill 450 MB.
    for entry in _entries(path, layout, rows):
        first = np.searchsorted(shards, entry.shard)
        end = np.searchsorted(shards, entry.shard, "right")
        of_entry = order[first:end]
        of_shard = rows[of_entry].tolist()
        digests = entry.failed | entry.values
        values[of_entry] = np.array([digests[row] for row in of_shard], object)
        sources[of_entry] = np.array([entry.sources.get(row) for row in of_shard], object)
    ids = ledger.column(path, "ids")[rows].tolist()
    return digest_of_rows(layout.dtype, zip(ids, values, sources, strict=True))


def changed(path: Path, rows: np.ndarray) -> Iterator[tuple[Path, str, str]]:
    """Compare the files of the shards that hold some rows, int64 [B], with the ledger; yields what
    differs.
    """
    # A file, the recorded checksum, and the one that it has: "" if it is missing. An entry of the
    # ledger differs if its rows' digests are not those of the shard's values, or if it was made by
    # something other than the store says.
    layout, fingerprint = read_header(path)
    made_by = maker(fingerprint)

    def differ(entry: ledger.LedgerEntry) -> list[tuple[Path, str, str]]:
        return _differ(path, layout, made_by, entry)

    workers = min(AT_ONCE, os.cpu_count() or 1)
    with ThreadPoolExecutor(workers) as threads:  # hashing releases Python's lock
        for differences in threads.map(differ, _entries(path, layout, rows)):
            yield from differences


def _differ(
    path: Path, layout: StoreLayout, made_by: str, entry: ledger.LedgerEntry
) -> list[tuple[Path, str, str]]:
    contents = shard_file.read(path, layout, entry.shard)
    in_ledger = ledger.file(path, entry.shard)
    differ = []
    for name in layout.arrays():
        recorded = entry.checksums.get(name, "")
        checksum = contents.checksums[name]
        if checksum != recorded:
            file = shard_file.file_of(path, layout, name, entry.shard)
            differ.append((file, recorded, checksum))
    if not differ and contents.values != entry.values:
        differ = [(in_ledger, _summary(entry.values), _summary(contents.values))]
    if entry.maker != made_by:
        differ.append((in_ledger, made_by, entry.maker))
    return differ


def _summary(values: dict[int, str]) -> str:
    return digest(sorted(values.items()))


def _entries(path: Path, layout: StoreLayout, rows: np.ndarray) -> Iterator[ledger.LedgerEntry]:
    """The entries of the shards that hold some rows, int64 [B], in order."""
    shards = np.unique(np.asarray(rows, np.int64) // layout.shard_rows)
    for shard in shards.tolist():
        entry = ledger.read(path, shard)
        here = layout.rows(shard)
        if entry is None:
            raise StoreError(
                f"{path}: shard {shard} is not extracted; run the same `pipeline extract` again to resume"
            )
        if (entry.shard, entry.first, entry.rows) != (shard, here.start, len(here)):
            raise StoreError(
                f"{ledger.file(path, shard)}: is of other rows; run `pipeline store verify --repair`"
            )
        yield entry
