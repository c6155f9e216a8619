"""The bytes behind some rows of a store: their checksums in the ledger, and whether the files still match."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from pipeline.files.digest import digest
from pipeline.store import ledger
from pipeline.store.layout import StoreError, StoreLayout, attributes, read_header

Progress = Callable[[int], object]


def shards(layout: StoreLayout, rows: np.ndarray) -> list[int]:
    """Find the shards that hold some rows.

    Args:
        layout: The store's layout.
        rows: Int64 [B].

    Returns:
        Their numbers, ascending.
    """
    found: list[int] = np.unique(np.asarray(rows, np.int64) // layout.shard_images).tolist()
    return found


def content(path: Path, rows: np.ndarray) -> str:
    """Digest the recorded content of some rows without reading features.

    Args:
        path: The store.
        rows: Int64 [B].

    Returns:
        SHA-256 over the ledger's entries of the shards that hold these rows, the arrays' metadata and the image ids. In
        a store that has grown the sizes that stay the same stand for the metadata, and the ids are those of the rows.

    Raises:
        StoreError: If an entry is missing or cannot be read.
    """
    layout, _ = read_header(path)
    told, there = attributes(path), shards(layout, rows)
    if layout.sizes:  # what grows further is no part of these rows
        kept = replace(layout, images=0, sizes=()).recorded()
        return digest([kept, ids(path)[rows].tolist(), *(asdict(_entry(path, shard)) for shard in there)])
    return digest([told.get("arrays_digest"), told.get("image_ids_digest"),
                   *(asdict(_entry(path, shard)) for shard in there)])


def changed(path: Path, rows: np.ndarray, progress: Progress = lambda count: None) -> Iterator[tuple[Path, str, str]]:
    """Compare the files of the shards that hold some rows with the ledger.

    Args:
        path: The store.
        rows: Int64 [B].
        progress: Called with the bytes of each file that was read.

    Yields:
        Each file that differs, the recorded checksum, and the one that it has: "" if it is missing.

    Raises:
        StoreError: If an entry of the ledger is missing or cannot be read.
    """
    layout, _ = read_header(path)
    arrays = {name: len(shape) + 1 for name, (shape, _) in layout.arrays().items()}
    entries = [_entry(path, shard) for shard in shards(layout, rows)]
    files = [(ledger.shard_file(path, name, entry.shard, dimensions), entry.checksums.get(name, ""))
             for entry in entries for name, dimensions in arrays.items()]
    with ThreadPoolExecutor(os.cpu_count()) as threads:  # hashing lets go of Python's lock
        for (file, recorded), found in zip(files, threads.map(_checksum, (file for file, _ in files)), strict=True):
            progress(file.stat().st_size if found else 0)
            if found != recorded:
                yield file, recorded, found


def require(path: Path, rows: np.ndarray, progress: Progress = lambda count: None) -> None:
    """Check the bytes of the shards that hold some rows.

    Args:
        path: The store.
        rows: Int64 [B].
        progress: Called with the bytes of each file that was read.

    Raises:
        StoreError: If a file differs from the ledger.
    """
    for file, _, found in changed(path, rows, progress):
        raise StoreError(f"{file}: {'its bytes have changed since they were written' if found else 'is missing'}; run "
                         "`pipeline verify --repair`")


def ids(path: Path) -> np.ndarray:
    """Read the image id of each row.

    Args:
        path: The store.

    Returns:
        Int64 [I].
    """
    import zarr

    found = zarr.open_group(path, mode="r", zarr_format=3)["image_ids"]
    assert isinstance(found, zarr.Array)
    return np.asarray(found[:])


def _entry(path: Path, shard: int) -> ledger.LedgerEntry:
    entry = ledger.read(path, shard)
    if entry is None or entry.shard != shard:
        raise StoreError(f"{path}: shard {shard} is not extracted; run the same `pipeline extract` again to resume")
    return entry


def _checksum(file: Path) -> str:
    return ledger.checksum(file) if file.exists() else ""
