"""Feature stores that are made by hand, without a network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np

from pipeline.foundation.artefacts.making import IfChanged
from pipeline.make.features.store import StoreLayout, Wanted, making, plan


def prepare(
    path: Path,
    layout: StoreLayout,
    fingerprint: Mapping[str, Any],
    ids: np.ndarray,
    sizes: np.ndarray,
    if_changed: IfChanged = "refuse",
) -> list[int]:
    """Create a store, or take up one that is there; the shards still to be written."""
    wanted = Wanted(ids, sizes, fingerprint, layout)
    with making(path, wanted, plan(path, wanted), if_changed) as (_, todo):
        return todo.pending


def put_chunk(file: Path, images: int, chunk: bytes | None) -> None:
    """Give the first image of a shard's file another chunk, or none; the index and its checksum are
    right.
    """
    content, size = file.read_bytes(), 16 * images
    index = np.frombuffer(content[-size - 4 : -4], "<u8").copy()
    index[:2] = (len(content) - size - 4, len(chunk)) if chunk else 2**64 - 1
    raw = index.tobytes()
    file.write_bytes(
        content[: -size - 4] + (chunk or b"") + raw + google_crc32c.value(raw).to_bytes(4, "little")
    )
