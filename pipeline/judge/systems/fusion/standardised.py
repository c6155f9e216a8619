"""Z-scores: each query's candidates are scaled to mean 0 and standard deviation 1 before systems
are averaged.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.foundation.evaluation.retrieval import (
    Cells,
    Direction,
    Floats,
    Ids,
    Scores,
    Similarity,
    similarity,
)
from pipeline.foundation.evaluation.retrieval.similarity import first_equal
from pipeline.foundation.evaluation.retrieval.workers import share
from pipeline.judge.systems.fusion.combining import CellByCell, PerQuery

# Bytes of a block of scores. It is read several times in float64, and so small stays in the
# processor's inner cache.
BLOCK_BYTES = 1_000_000


class Moments(NamedTuple):
    """How the values of n lines (all rows, or all columns) are standardised."""

    # float64 [n], subtracted from each line's values: the mean, or the smallest value for ranges
    mean: Floats
    # float64 [n], 1 / standard deviation (or 1 / range); 0 if all values of a line are equal
    inverse: Floats


class Lines:
    """Running statistics of n lines; each array [n].

    Parts of a line are merged by the rule of Chan, Golub and LeVeque (1983). It loses no digits if
    a mean is large compared with the deviation.
    """

    def __init__(self, lines: int) -> None:
        self.count = np.zeros(lines)
        self.mean = np.zeros(lines)
        self.squares = np.zeros(lines)
        self.least = np.full(lines, np.inf)
        self.greatest = np.full(lines, -np.inf)

    def merge(
        self,
        part: slice,
        count: np.ndarray | int,
        mean: Floats,
        squares: Floats,
        least: Floats,
        greatest: Floats,
    ) -> None:
        """Merge `count` values of each line, whose squared deviations from `mean` add up to
        `squares`.
        """
        before = self.count[part]
        both = before + count
        share_of_new = np.divide(count, both, out=np.zeros_like(both), where=both > 0)
        shift = mean - self.mean[part]
        between = shift * shift * before * share_of_new
        self.squares[part] += squares + between
        self.mean[part] += shift * share_of_new
        self.count[part] = both
        np.minimum(self.least[part], least, out=self.least[part])
        np.maximum(self.greatest[part], greatest, out=self.greatest[part])

    def merge_all(self, other: "Lines") -> None:
        """Merge what others counted of the same lines."""
        whole = slice(None)
        self.merge(whole, other.count, other.mean, other.squares, other.least, other.greatest)

    def moments(self) -> Moments:
        """Compute the mean and 1 / the deviation of each line, 0 if its values are equal."""
        constant = self.least == self.greatest
        deviation = np.sqrt(self.squares / self.count)
        # Values count as equal, too, if their differences are so small that the squares are 0.
        constant |= deviation == 0
        divisor = np.where(constant, 1, deviation)
        inverse = np.where(constant, 0, 1 / divisor)
        return Moments(self.mean, inverse)

    def ranges(self) -> Moments:
        """Compute the smallest value of each line and 1 / (largest - smallest), 0 if they are
        equal.
        """
        distance = self.greatest - self.least
        inverse = np.divide(1, distance, out=np.zeros_like(distance), where=distance > 0)
        return Moments(self.least, inverse)


class _Worker:
    """The statistics of the blocks that one thread reads."""

    def __init__(self, source: Similarity) -> None:
        self.source = source
        self.rows, self.columns = (Lines(size) for size in source.shape)

    def add(self, rows: slice, columns: slice) -> None:
        cells = self.source.block(rows, columns)
        values = cells.astype(np.float64, copy=False)
        by_row = values.mean(1)
        by_column = values.mean(0)
        height, width = cells.shape
        deviations = np.empty_like(values)
        np.subtract(values, by_row[:, None], out=deviations)
        squares = np.einsum("ij,ij->i", deviations, deviations)
        self.rows.merge(rows, width, by_row, squares, cells.min(1), cells.max(1))
        np.subtract(values, by_column, out=deviations)
        squares = np.einsum("ij,ij->j", deviations, deviations)
        self.columns.merge(columns, height, by_column, squares, cells.min(0), cells.max(0))


def statistics(source: Similarity, block_bytes: int) -> tuple[Lines, Lines]:
    """Measure each row and each column, to about the last digit of float64."""
    # Memory holds a block as it is, in float64, and as deviations.
    blocks = source.grid(source.shape, min(BLOCK_BYTES, block_bytes // 5))
    first, *rest = share(blocks, lambda: _Worker(source), lambda cells: None)
    for other in rest:
        first.rows.merge_all(other.rows)
        first.columns.merge_all(other.columns)
    return first.rows, first.columns


class Standardised(CellByCell):
    """The weighted sum of sources [I, C], each standardised among the candidates of a query.

    A query whose candidates all have equal scores gets 0. A cell needs only its score and two
    numbers of its query, so blocks may have any shape. A source's block, the same in float64, and
    the sum are in memory at once.
    """

    copies = 5

    def __init__(
        self,
        sources: Sequence[Similarity],
        weights: Sequence[float],
        of_query: Sequence[Moments],
        by_image: bool,
    ) -> None:
        super().__init__(sources)
        self.by_image = by_image
        self.means = [moments.mean for moments in of_query]
        self.scales = []
        for moments, weight in zip(of_query, weights, strict=True):
            self.scales.append(moments.inverse * weight)

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        return super().grid(shape, min(BLOCK_BYTES * self.copies, block_bytes))

    def cells(self, parts: Iterator[Cells], images: Ids, captions: Ids) -> Cells:
        # Each operation is rounded by itself, so a cell has the same bits in any block and as a
        # pair.
        query = images if self.by_image else captions
        total: Cells | None = None
        for part, mean, scale in zip(parts, self.means, self.scales, strict=True):
            scores = np.subtract(part, mean[query], dtype=np.float64)
            scores *= scale[query]
            if total is None:
                total = scores
            else:
                np.add(total, scores, out=total)
        assert total is not None
        return total


class ScaledPerQuery(PerQuery):
    """The weighted sum of sources that are scaled among each query's candidates. A subclass says
    how.
    """

    scaled: Callable[[Lines], Moments]  # the moments by which all lines are scaled

    def __init__(self, sources: Sequence[Scores], weights: Sequence[float]) -> None:
        super().__init__(sources, weights)
        self.measured: dict[tuple[int, Direction | None], tuple[Lines, Lines]] = {}

    def direction(self, name: Direction, block_bytes: int) -> Similarity:
        sources = [similarity.of_direction(source, name, block_bytes) for source in self.sources]
        moments = []
        for number, source in enumerate(sources):
            # A matrix that serves both directions is read once for both.
            serves_both = self.sources[number] is source
            key = number, None if serves_both else name
            if key not in self.measured:
                self.measured[key] = statistics(source, block_bytes)
            side = 0 if name == "i2t" else 1
            of_query = self.scaled(self.measured[key][side])
            # Equal queries have the same moments, though their computed scores may differ by
            # rounding.
            moments.append(_same_of_equals(of_query, source, side))
        return Standardised(sources, self.weights, moments, name == "i2t")


def _same_of_equals(of_query: Moments, source: Similarity, side: int) -> Moments:
    """Moments, with those of the first of equal queries for all of them."""
    if source.equal is None:
        return of_query
    first = first_equal(source.equal[side])
    if first is None:
        return of_query
    return Moments(of_query.mean[first], of_query.inverse[first])


class ZScores(ScaledPerQuery):
    """The weighted sum of sources whose scores are standardised among each query's candidates."""

    scaled = staticmethod(Lines.moments)
