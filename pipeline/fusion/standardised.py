"""Z-scores: each query's candidates are scaled to mean 0 and standard deviation 1 before systems are averaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pipeline.fusion.combining import PerQuery, joint, of_direction
from pipeline.fusion.moments import BLOCK_BYTES, Moments, moments
from pipeline.retrieval.blocks import Cells, Ids, Index
from pipeline.retrieval.similarity import Direction, EqualRows, Similarity


class Standardised:
    """The weighted sum of sources [I, C], each standardised among the candidates of a query.

    A query whose candidates all have equal scores gets 0. A cell needs only its score and two numbers of its query, so
    blocks may have any shape.
    """

    def __init__(self, sources: Sequence[Similarity], weights: Sequence[float], of_query: Sequence[Moments],
                 by_image: bool) -> None:
        """Hold the sources."""
        self.sources, self.by_image, self.shape = sources, by_image, sources[0].shape
        self.means = [mean for mean, _ in of_query]
        self.scales = [inverse * weight for (_, inverse), weight in zip(of_query, weights, strict=True)]

    @property
    def equal(self) -> EqualRows | None:
        """Which rows and columns must agree, see `joint`."""
        return joint(self.sources)

    def block(self, images: Index, captions: Index) -> Cells:
        """Fuse a block, see `Similarity.block`."""
        query = (images, None) if self.by_image else (None, captions)
        return self._sum((source.block(images, captions) for source in self.sources), query)

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        """Fuse single cells, see `Similarity.pairs`."""
        query = images if self.by_image else captions
        return self._sum((source.pairs(images, captions) for source in self.sources), query)

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        # A source's block, the same in float64, and the sum are there at once.
        """Cut a shape into blocks as the first source is best read."""
        return self.sources[0].grid(shape, min(BLOCK_BYTES, block_bytes // 5))

    def _sum(self, parts: Iterator[Cells], query: Any) -> Cells:
        # Plain operations, each rounded alone: a cell comes out the same in any block, and as a pair.
        total: Cells | None = None
        for part, mean, scale in zip(parts, self.means, self.scales, strict=True):
            scores = np.subtract(part, mean[query], dtype=np.float64)
            scores *= scale[query]
            total = scores if total is None else np.add(total, scores, out=total)
        assert total is not None
        return total


class ScaledPerQuery(PerQuery):
    """The weighted sum of sources that are scaled among each query's candidates. A subclass says how."""

    measure: Callable[[Similarity, int], tuple[Moments, Moments]]
    """From a source, how its rows and its columns are scaled."""

    def direction(self, name: Direction, block_bytes: int) -> Similarity:
        sources = [of_direction(source, name, block_bytes) for source in self.sources]
        lines = [self._lines(number, source, name, block_bytes) for number, source in enumerate(sources)]
        return Standardised(sources, self.weights, lines, name == "i2t")

    def _lines(self, number: int, source: Similarity, name: Direction, block_bytes: int) -> Moments:
        """How the queries of one source are scaled; a matrix that serves both directions is read once for both."""
        if not hasattr(self, "measured"):
            self.measured: dict[tuple[int, Direction | None], tuple[Moments, Moments]] = {}
        key = number, name if self.sources[number] is not source else None
        if key not in self.measured:
            self.measured[key] = type(self).measure(source, block_bytes)
        return self.measured[key][0 if name == "i2t" else 1]


class ZScores(ScaledPerQuery):
    """The weighted sum of sources whose scores are standardised among each query's candidates."""

    measure = staticmethod(moments)
