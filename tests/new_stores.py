"""Feature stores that are made by hand, without a network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.features.store import StoreLayout, Wanted, making, plan


def prepare(path: Path, layout: StoreLayout, fingerprint: Mapping[str, Any], ids: np.ndarray, sizes: np.ndarray,
            if_changed: str = "refuse") -> list[int]:
    """Create a store, or take up one that is there; the shards still to be written."""
    wanted = Wanted(ids, sizes, fingerprint, layout)
    with making(path, wanted, plan(path, wanted), if_changed) as (_, todo):
        return todo.pending
