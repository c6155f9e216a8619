"""The bytes behind some rows of a store: what the ledger says of them, and whether the files are still so."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import numpy as np

from pipeline.files.digest import digest
from pipeline.store import ledger
from pipeline.store.layout import Layout, StoreError, attributes, describe

Progress = Callable[[int], object]


def shards(layout: Layout, rows: np.ndarray) -> list[int]:
    """The shards that hold these rows, int64 [B], in order."""
    found: list[int] = np.unique(np.asarray(rows, np.int64) // layout.shard_images).tolist()
    return found


def content(path: Path, rows: np.ndarray) -> str:
    """SHA-256 over the ledger's entries of the shards that hold these rows, the arrays' metadata and the image ids: it
    reads no features.

    Raises StoreError where an entry is missing or cannot be read.
    """
    layout, _ = describe(path)
    told = attributes(path)
    return digest([told.get("arrays_digest"), told.get("image_ids_digest"),
                   *(asdict(_entry(path, shard)) for shard in shards(layout, rows))])


def changed(path: Path, rows: np.ndarray, progress: Progress = lambda count: None) -> Iterator[tuple[Path, str, str]]:
    """Read the files of the shards that hold these rows, and yield those whose bytes are not what the ledger says.

    Args:
        path: the store.
        rows: int64 [B].
        progress: told the bytes of each file that was read.

    Yields:
        A file, the checksum that was recorded, and the one that it has: "" where it is not there.

    Raises:
        StoreError: an entry of the ledger is missing or cannot be read.
    """
    layout, _ = describe(path)
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
    """Raises StoreError where the bytes of these rows' shards are not what the ledger says."""
    for file, _, found in changed(path, rows, progress):
        raise StoreError(f"{file}: {'its bytes are not those that were written' if found else 'is missing'}; run "
                         "`pipeline verify --repair`")


def _entry(path: Path, shard: int) -> ledger.Entry:
    entry = ledger.read(path, shard)
    if entry is None or entry.shard != shard:
        raise StoreError(f"{path}: shard {shard} is not extracted; run the same `pipeline extract` again to resume")
    return entry


def _checksum(file: Path) -> str:
    return ledger.checksum(file) if file.exists() else ""
