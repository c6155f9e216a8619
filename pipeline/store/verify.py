"""Check a store against its ledger and report what is wrong and where."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import zarr

from pipeline.files.digest import digest
from pipeline.store import ledger
from pipeline.store.layout import DONE, FAILED, StoreError, StoreLayout, arrays_digest, read_header


def verify(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Check the ledger, the checksums of each shard, shapes, counts, status, and that all values are finite.

    Args:
        path: The store.

    Yields:
        Each shard's number and its faults, none for a good one.

    Raises:
        StoreError: If the store as a whole is damaged.
    """
    layout, _ = read_header(path)
    try:
        group = zarr.open_group(path, mode="r", zarr_format=3)
    except Exception as error:  # zarr raises its own and others' for metadata that is not its own
        raise StoreError(f"{path}: zarr cannot open it ({type(error).__name__}); extract again") from None
    if arrays_digest(path, layout) != group.attrs.get("arrays_digest"):
        raise StoreError(f"{path}: an array's metadata (zarr.json) was edited or lost; extract again")
    for name, (shape, dtype) in layout.arrays().items():
        array = group.get(name)
        if not isinstance(array, zarr.Array) or array.shape != (layout.images, *shape) or array.dtype != dtype:
            raise StoreError(f"{path}/{name}: expected {dtype} {(layout.images, *shape)}, got "
                             f"{f'{array.dtype} {array.shape}' if isinstance(array, zarr.Array) else 'nothing'}")
    ids = group.get("image_ids")
    if not isinstance(ids, zarr.Array) or digest(np.asarray(ids[:]).tolist()) != group.attrs.get("image_ids_digest"):
        raise StoreError(f"{path}/image_ids: not those that were written; extract again")
    for shard in range(layout.shards):
        yield shard, list(_faults(path, layout, group, shard)) if layout.rows(shard) else []


def _faults(path: Path, layout: StoreLayout, group: zarr.Group, shard: int) -> Iterator[str]:
    try:
        entry = ledger.read(path, shard)
    except StoreError:
        yield "its ledger entry is not readable"
        return
    if entry is None:
        yield "not extracted yet"
        return
    rows = layout.rows(shard)
    if (entry.shard, entry.first, entry.images) != (shard, rows.start, len(rows)):
        yield f"its ledger entry is of images {entry.first} to {entry.first + entry.images - 1}"
        return
    for name, (shape, _) in layout.arrays().items():
        file = ledger.shard_file(path, name, shard, len(shape) + 1)
        if not file.exists():
            yield f"{name}: its file is missing"
        elif ledger.checksum(file) != entry.checksums.get(name):
            yield f"{name}: its bytes have changed since they were written"
        else:
            yield from _values(name, np.asarray(group[name][rows.start:rows.stop]), entry, layout)  # type: ignore[index]


def _values(name: str, values: np.ndarray, entry: ledger.LedgerEntry, layout: StoreLayout) -> Iterator[str]:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        bad = entry.first + int(np.argmin(np.isfinite(values).reshape(len(values), -1).all(axis=1)))
        yield f"{name}: image row {bad} has values that are not finite"
    failed = np.isin(np.arange(entry.first, entry.first + entry.images), list(entry.failed))
    if name == "status" and not np.array_equal(values, np.where(failed, FAILED, DONE)):
        yield "status: does not agree with the ledger's failures"
    if name == "counts" and not (((values >= 1) & (values <= layout.items)) ^ failed).all():
        yield f"counts: expected 1 to {layout.items} items, or 0 for failed images"
