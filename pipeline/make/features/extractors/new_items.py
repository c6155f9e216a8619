"""The engine that made a store's items, for photographs or captions that are in no store."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline.make.features import extractors
from pipeline.make.features.extractors.base import bring
from pipeline.make.features.extractors.items import Items
from pipeline.make.features.store import ItemFormat


class NewItems:
    """Computes items as a store's were made; InputError if they were imported, or the engine's
    weights differ.
    """

    def __init__(self, made: ItemFormat, device: str = "cpu") -> None:
        self.made = made
        self.engine = extractors.rebuild(made, device)

    def extracted(
        self, sources: Sequence[Any], sizes: Sequence[tuple[int, int]] | None = None
    ) -> list[Items]:
        """Compute the items of some photographs of these widths and heights, or of captions,
        rounded as the store's.
        """
        prepared = [self.engine.prepare(source) for source in sources]
        if not sizes:
            sizes = [(0, 0)] * len(prepared)
        return bring(self.engine.extract(prepared, list(sizes)), self.made.dtype)

    def items(
        self, sources: Sequence[Any], sizes: Sequence[tuple[int, int]] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute items as `FeatureStore.read` gives them: [B, N, D], padding zero, and counts
        int64 [B].
        """
        return padded(self.extracted(sources, sizes), self.made)


def padded(extracted: Sequence[Items], made: ItemFormat) -> tuple[np.ndarray, np.ndarray]:
    """Pad items with zeros to the most that the store has: [B, N, D], and counts int64 [B]."""
    items = np.zeros((len(extracted), made.items, made.dimension), made.dtype)
    counts = np.zeros(len(extracted), np.int64)
    for place, of_source in enumerate(extracted):
        count = len(of_source.features)
        items[place, :count] = of_source.features
        counts[place] = count
    return items, counts
