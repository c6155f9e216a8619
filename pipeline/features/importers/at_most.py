"""A source of which long clips come in with fewer frames, taken evenly."""

from __future__ import annotations

import numpy as np

from pipeline.features.importers.base import FeatureSource, SourceItems


class AtMost(FeatureSource):
    """A source whose clips have at most so many frames: round(linspace(0, T − 1, most)), as HGR chooses them.

    Args:
        source: The indexed source.
        most: The most frames of a clip.
    """

    def __init__(self, source: FeatureSource, most: int) -> None:
        super().__init__(np.minimum(source.counts, most), source.dimension, source.files, source.extras, source.faults,
                         source.notes)
        self.source, self.most = source, most

    def read(self, row: int) -> SourceItems:
        found = self.source.read(row)
        count = len(found.features)
        if count <= self.most:
            return found
        chosen = np.round(np.linspace(0, count - 1, self.most)).astype(np.int64)
        extras = {name: values[chosen] for name, values in found.extras.items()}
        return SourceItems(found.features[chosen], extras, found.size)

    def place(self, row: int) -> str:
        return self.source.place(row)
