"""The bytes behind some rows of a store: a digest of what is recorded of them, and whether the files still match.

The digest is made of one digest an image, so it stays the same where a store grows, is compacted, or is rewritten with
another compressor or shard size. Stores from before images had one are digested by their shards' files.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.features.store import ledger, shard_contents
from pipeline.features.store.layout import StoreError, StoreLayout, attributes, maker, read_header
from pipeline.files.digest import digest

Progress = Callable[[int], object]
BY_IMAGES = "images:"
"""How a digest begins that does not depend on shards."""
AT_ONCE = 8  # shards in memory


def shards(layout: StoreLayout, rows: np.ndarray) -> list[int]:
    """Find the shards that hold some rows. `rows` is int64 [B]."""
    found: list[int] = np.unique(np.asarray(rows, np.int64) // layout.shard_images).tolist()
    return found


def content(path: Path, rows: np.ndarray, like: str = "") -> str:
    """Digest the recorded content of some rows, int64 [B], without reading features.

    It gives "images:" and SHA-256 over the dtype, and over id, digest and photograph's checksum of each row. Where
    `like`, a digest that was recorded, was made otherwise, or rows have no digest: see `_by_shards`.
    """
    layout, _ = read_header(path)
    entries = [_entry(path, layout, shard) for shard in shards(layout, rows)]
    known: dict[int, str] = {row: text for entry in entries for row, text in (entry.failed | entry.values).items()}
    if (like and not like.startswith(BY_IMAGES)) or not known.keys() >= set(rows.tolist()):
        return _by_shards(path, layout, rows, entries)
    photographs = {row: checksum for entry in entries for row, checksum in entry.photographs.items()}
    each = zip(ids(path)[rows].tolist(), rows.tolist(), strict=True)
    return BY_IMAGES + digest([layout.dtype, [[name, known[row], photographs.get(row)] for name, row in each]])


def _by_shards(path: Path, layout: StoreLayout, rows: np.ndarray, entries: list[ledger.LedgerEntry]) -> str:
    """Digest the entries of the shards that hold these rows, the arrays' metadata and the image ids.

    In a store that has grown the sizes that stay the same stand for the metadata, and the ids are those of the rows.
    """
    files = [_without_values(entry) for entry in entries]
    if layout.sizes:  # what grows further is no part of these rows
        kept = replace(layout, images=0, sizes=()).recorded()
        return digest([kept, ids(path)[rows].tolist(), *files])
    told = attributes(path)
    return digest([told.get("arrays_digest"), told.get("image_ids_digest"), *files])


def _without_values(entry: ledger.LedgerEntry) -> dict[str, Any]:
    """An entry as it was recorded before images had digests and entries said what made them."""
    return {name: value for name, value in asdict(entry).items() if name not in ("values", "maker")}


def changed(path: Path, rows: np.ndarray, progress: Progress = lambda count: None) -> Iterator[tuple[Path, str, str]]:
    """Compare the files of the shards that hold some rows, int64 [B], with the ledger.

    It yields each file that differs, the recorded checksum, and the one that it has: "" if it is missing. An entry of
    the ledger differs where its images' digests are not those of the shard's values, or what it says made them is not
    what the store says.
    """
    layout, fingerprint = read_header(path)
    entries = [_entry(path, layout, shard) for shard in shards(layout, rows)]
    with ThreadPoolExecutor(min(AT_ONCE, os.cpu_count() or 1)) as threads:  # hashing lets go of Python's lock
        for size, differ in threads.map(lambda entry: _compared(path, layout, maker(fingerprint), entry), entries):
            progress(size)
            yield from differ


def _compared(path: Path, layout: StoreLayout, made_by: str, entry: ledger.LedgerEntry
              ) -> tuple[int, list[tuple[Path, str, str]]]:
    """The bytes of a shard's files, and those that differ."""
    there = shard_contents.read(path, layout, entry.shard)
    differ = [(shard_contents.file_of(path, layout, name, entry.shard), recorded, there.checksums[name])
              for name in layout.arrays()
              if there.checksums[name] != (recorded := entry.checksums.get(name, ""))]
    if entry.values and not differ and there.values != entry.values:
        differ = [(ledger.file(path, entry.shard), _summary(entry.values), _summary(there.values))]
    if entry.maker not in ("", made_by):
        differ.append((ledger.file(path, entry.shard), made_by, entry.maker))
    return there.bytes, differ


def _summary(values: dict[int, str]) -> str:
    return digest(sorted(values.items()))


def require(path: Path, rows: np.ndarray, progress: Progress = lambda count: None) -> None:
    """Check the bytes of the shards that hold some rows. `rows` is int64 [B]."""
    for file, _, found in changed(path, rows, progress):
        raise StoreError(f"{file}: {'its bytes have changed since they were written' if found else 'is missing'}; run "
                         "`pipeline verify --repair`")


def ids(path: Path) -> np.ndarray:
    """Read the image id of each row: int64 [I]."""
    import zarr

    found = zarr.open_group(path, mode="r", zarr_format=3)["image_ids"]
    assert isinstance(found, zarr.Array)
    return np.asarray(found[:])


def _entry(path: Path, layout: StoreLayout, shard: int) -> ledger.LedgerEntry:
    entry, rows = ledger.read(path, shard), layout.rows(shard)
    if entry is None:
        raise StoreError(f"{path}: shard {shard} is not extracted; run the same `pipeline extract` again to resume")
    if (entry.shard, entry.first, entry.images) != (shard, rows.start, len(rows)):
        raise StoreError(f"{ledger.file(path, shard)}: is of other images; repair it with `pipeline verify --repair`")
    return entry
