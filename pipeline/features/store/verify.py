"""Check a store against its ledger and report what is wrong and where."""

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import zarr

from pipeline.features.store import ledger, shard_contents
from pipeline.features.store.layout import (
    COPY,
    DONE,
    FAILED,
    StoreError,
    StoreLayout,
    arrays_digest,
    maker,
    read_header,
)
from pipeline.features.store.reader import all_finite
from pipeline.files.digest import digest


def verify(path: Path, workers: int = 1) -> Iterator[tuple[int, list[str]]]:
    """Check the ledger, the checksums of each shard, shapes, counts, status, and that all values are finite."""
    layout, fingerprint = read_header(path)
    if ledger.of_another_store(path, layout, fingerprint):
        raise StoreError(f"{path}: zarr.json is another store's, by what the ledger says made the shards; --repair "
                         f"restores it where {COPY} is this store's own")
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
    with ThreadPoolExecutor(workers) as threads:  # hashing lets go of Python's lock
        found = threads.map(lambda shard: list(_faults(path, layout, maker(fingerprint), shard)), range(layout.shards))
        yield from enumerate(found)


def _faults(path: Path, layout: StoreLayout, made_by: str, shard: int) -> Iterator[str]:
    if not layout.rows(shard):
        return
    try:
        entry = ledger.read(path, shard)
    except StoreError:
        yield "its ledger entry is not readable"
        return
    if entry is None:
        yield "not extracted yet"
        return
    rows = layout.rows(shard)
    if strange := [row for row in entry.failed if row not in rows]:
        yield f"its ledger entry tells of image row {strange[0]}, which is of another shard"
        return
    if (entry.shard, entry.first, entry.images) != (shard, rows.start, len(rows)):
        yield f"its ledger entry is of images {entry.first} to {entry.first + entry.images - 1}"
        return
    if entry.maker not in ("", made_by):
        yield "is another store's, by its ledger entry"
        return
    there = shard_contents.read(path, layout, shard)
    same = {name: checksum == entry.checksums.get(name) for name, checksum in there.checksums.items()}
    for name, checksum in there.checksums.items():
        if not checksum:
            yield f"{name}: its file is missing"
        elif not same[name]:
            yield f"{name}: its bytes have changed since they were written"
        elif name not in there.arrays:
            yield f"{name}: its file lacks images, though its checksum is right"
    yield from impossible(layout, rows, {name: values for name, values in there.arrays.items() if same[name]},
                          entry.failed)
    if all(same.values()) and entry.values and entry.values != there.values:
        yield "its images' digests in the ledger are not those of its values"


def impossible(layout: StoreLayout, rows: range, arrays: Mapping[str, np.ndarray], failed: Collection[int]
               ) -> Iterator[str]:
    """Find values that no shard has."""
    lacking = np.isin(np.arange(rows.start, rows.stop), list(failed))
    for name, values in arrays.items():
        if values.dtype.kind == "f" and not all_finite(values):
            bad = rows.start + int(np.argmin(np.isfinite(values).reshape(len(values), -1).all(axis=1)))
            yield f"{name}: image row {bad} has values that are not finite"
        if name == "status" and not np.array_equal(values, np.where(lacking, FAILED, DONE)):
            yield "status: does not agree with the ledger's failures"
        if name == "counts" and not (((values >= 1) & (values <= layout.items)) ^ lacking).all():
            yield f"counts: expected 1 to {layout.items} items, or 0 for failed images"
