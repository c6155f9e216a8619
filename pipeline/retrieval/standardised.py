"""Z-scores: every query's candidates given mean 0 and standard deviation 1, before systems are averaged."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeline.retrieval.blocks import Cells, Ids, Index
from pipeline.retrieval.combining import PerQuery, WeightedSum
from pipeline.retrieval.moments import Floats, Moments, moments
from pipeline.retrieval.similarity import Direction, Similarity


class Standardised:
    """A source [I, C] whose scores have mean 0 and deviation 1 among each query's candidates; 0 where all are equal.

    A cell needs itself and two numbers of its query, so blocks may be cut as the source is best read.
    """

    def __init__(self, source: Similarity, of_query: Moments, by_image: bool) -> None:
        self.source, self.by_image = source, by_image
        self.mean, self.inverse = of_query
        self.shape, self.equal = source.shape, source.equal

    def block(self, images: Index, captions: Index) -> Cells:
        query = (images, None) if self.by_image else (None, captions)
        return self._scale(self.source.block(images, captions), self.mean[query], self.inverse[query])

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        query = images if self.by_image else captions
        return self._scale(self.source.pairs(images, captions), self.mean[query], self.inverse[query])

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        # In float64, beside the source's own block.
        return self.source.grid(shape, block_bytes // 3)

    def _scale(self, scores: Cells, mean: Floats, inverse: Floats) -> Cells:
        # Two plain operations, each rounded alone: a cell comes out the same in any block, and as a pair.
        centred = np.subtract(scores, mean, dtype=np.float64)
        return np.multiply(centred, inverse, out=centred)


class ZScores(PerQuery):
    """The weighted sum of sources whose scores are standardised among each query's candidates."""

    def direction(self, name: Direction, block_bytes: int) -> Similarity:
        by_image = name == "i2t"
        if not hasattr(self, "moments"):
            self.moments = [moments(source, block_bytes) for source in self.sources]
        parts = [Standardised(source, both[0 if by_image else 1], by_image)
                 for source, both in zip(self.sources, self.moments, strict=True)]
        return WeightedSum(parts, self.weights)
