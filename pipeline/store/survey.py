"""What exists of a store, and what is still to be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.manifest.table import NO_FILE
from pipeline.store import ledger
from pipeline.store.layout import StoreError, StoreLayout, read_header

UNSAID = {"backend": "torch"}  # what it means that a fingerprint does not name one


def survey(path: Path, layout: StoreLayout, fingerprint: Mapping[str, Any], sizes: np.ndarray,
           retry_failed: bool = False) -> tuple[str, list[int]]:
    """Compare an existing store with the one that is wanted. Nothing is written.

    Args:
        path: The store; it need not exist.
        layout: The sizes wanted.
        fingerprint: The fingerprint wanted.
        sizes: Int64 [I], bytes of each image file, by the manifest.
        retry_failed: Whether shards with failed images are to be written again.

    Returns:
        How the store differs, "" if it does not; and the shards to write. A store that must be replaced has no such
        shards.
    """
    if not path.exists():
        return "", list(range(layout.shards))
    try:
        sizes_there, made_from = read_header(path)
    except StoreError as error:
        return str(error), []
    if difference := differs(made_from, fingerprint):
        return difference, []
    if sizes_there != layout:
        return f"layout: {sizes_there} there, {layout} now", []
    changed, pending = "", set(ledger.pending(path, layout))
    for entry in ledger.entries(path, layout):
        rows = layout.rows(entry.shard)
        then, now = file_sizes(path, entry, layout), sizes[rows.start:rows.stop]
        differ = rows.start + np.flatnonzero((then != now) & (then != NO_FILE) & (now != NO_FILE))
        stale = [row for row in differ if row not in entry.failed]
        if stale:
            changed = changed or f"image row {stale[0]} is another file now"
        if stale or (retry_failed and entry.failed):
            pending.add(entry.shard)
    return changed, sorted(pending)


def like(there: StoreLayout, wanted: StoreLayout) -> StoreLayout:
    """Let a store keep its shards and its compressor, which change no value.

    Args:
        there: The sizes of the store that is there.
        wanted: The sizes wanted.

    Returns:
        The sizes wanted, in such shards.
    """
    return replace(wanted, shard_images=there.shard_images, compressor=there.compressor)


def differs(made_from: Mapping[str, Any], fingerprint: Mapping[str, Any], besides: str = "") -> str:
    """Compare what made a store with what is wanted.

    Args:
        made_from: The store's fingerprint.
        fingerprint: The fingerprint wanted.
        besides: A key that may differ.

    Returns:
        The first difference in words, "" if there is none.
    """
    for key in sorted((made_from.keys() | fingerprint.keys()) - {besides}, key=lambda key: (key != "engine", key)):
        if made_from.get(key) != fingerprint.get(key):
            there, now = (made.get(key, UNSAID.get(key)) for made in (made_from, fingerprint))
            return f"{key}: {there} there, {now} now"
    return ""


def file_sizes(path: Path, entry: ledger.LedgerEntry, layout: StoreLayout) -> np.ndarray:
    """Read the sizes of the image files that a finished shard was made from.

    Args:
        path: The store.
        entry: The shard's entry.
        layout: The store's sizes.

    Returns:
        Int64 [images of the shard], bytes; zeros, which no image file has, where they are lost.
    """
    file = ledger.shard_file(path, "bytes", entry.shard, 1)
    raw = file.read_bytes() if file.exists() else b""
    rows = len(layout.rows(entry.shard))
    return np.frombuffer(raw, "<i8")[:rows] if len(raw) >= rows * 8 else np.zeros(rows, np.int64)
