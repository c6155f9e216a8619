"""Scores computed from other scores: cell by cell, query by query, or separately for each
direction; their sum.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from pipeline.foundation.evaluation.retrieval import (
    Cells,
    Direction,
    Ids,
    Index,
    PerDirection,
    Scores,
    Similarity,
    blocks,
    select,
)
from pipeline.foundation.evaluation.retrieval.similarity import (
    Directions,
    EqualRows,
    WholeQueries,
    of_direction,
)

# Memory of a cell where whole queries are computed: a source's score, its copy in float64, and the
# result.
BYTES_A_CELL = 24


class CellByCell(ABC):
    """Scores [I, C] of which each cell is computed from the same cell of one or more sources.

    A subclass implements `cells`, with operations that give a cell the same bits in every block and
    as a pair.
    """

    # The memory that computing a block takes, as a multiple of the block's own.
    copies = 3

    def __init__(self, sources: Sequence[Similarity]) -> None:
        self.sources = sources
        self.shape = sources[0].shape

    @property
    def equal(self) -> EqualRows | None:
        """Which rows and columns must get equal scores, see `joint`."""
        return joint(self.sources)

    @abstractmethod
    def cells(self, parts: Iterator[Cells], images: Ids, captions: Ids) -> Cells:
        """The fused cells, float32 or float64 in the shape of each part.

        Args:
            parts: Each source's cells, read when they are needed.
            images: Int64, the row of each cell, in a shape that fits.
            captions: Int64, the column of each cell, likewise.
        """

    def block(self, images: Index, captions: Index) -> Cells:
        """Compute a block, see `Similarity.block`."""
        rows = np.arange(self.shape[0])[images][:, None]
        columns = np.arange(self.shape[1])[captions][None]
        parts = (source.block(images, captions) for source in self.sources)
        return self.cells(parts, rows, columns)

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        """Compute single cells, see `Similarity.pairs`."""
        parts = (source.pairs(images, captions) for source in self.sources)
        return self.cells(parts, images, captions)

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """Cut a shape into blocks as the first source is best read, see `Similarity.grid`."""
        return self.sources[0].grid(shape, block_bytes // self.copies)


class WeightedSum(CellByCell):
    """The weighted sum of sources of one shape. The sum, one source and its product with the weight
    are in memory.
    """

    def __init__(self, sources: Sequence[Similarity], weights: Sequence[float]) -> None:
        super().__init__(sources)
        self.weights = weights

    def cells(self, parts: Iterator[Cells], images: Ids, captions: Ids) -> Cells:
        # Product and sum are separate operations: a fused multiply-add may round one part of a
        # block otherwise than another.
        total = next(parts) * self.weights[0]
        for weight, part in zip(self.weights[1:], parts, strict=True):
            total += part * weight
        return total


class QueryByQuery(WholeQueries, ABC):
    """Scores [I, C] of one direction that depend on all candidates of a query, so that each block
    has whole queries.

    `block_bytes` bounds a block's memory, unless a single query needs more. A subclass implements
    `queries`.
    """

    equal: EqualRows | None = None

    def __init__(self, shape: tuple[int, int], by_image: bool, block_bytes: int) -> None:
        self.shape = shape
        self.by_image = by_image
        self.asking, self.candidates = shape if by_image else shape[::-1]
        self.queries_at_once = max(1, block_bytes // (BYTES_A_CELL * self.candidates))

    @abstractmethod
    def queries(self, which: Index) -> Cells:
        """The scores of some queries (rows if images are queries, else columns): float64 [which,
        candidates].
        """

    def block(self, images: Index, captions: Index) -> Cells:
        """Compute a block, see `Similarity.block`."""
        if self.by_image:
            return self.queries(images)[:, captions]
        return self.queries(captions).T[images]

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        """Compute single cells, see `Similarity.pairs`."""
        query = captions
        candidate = images
        if self.by_image:
            query = images
            candidate = captions
        cells = np.empty(len(query), np.float64)
        asked, number = np.unique(query, return_inverse=True)
        order = np.argsort(number, kind="stable")
        firsts = np.arange(0, len(asked) + self.queries_at_once, self.queries_at_once)
        ends = np.searchsorted(number[order], firsts)
        parts = pairwise(ends.tolist())
        for first, (start, end) in zip(firsts.tolist(), parts, strict=False):
            of_part = order[start:end]
            scores = self.queries(asked[first : first + self.queries_at_once])
            row = number[of_part] - first
            cells[of_part] = scores[row, candidate[of_part]]
        return cells

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """Cut a shape into blocks of whole queries."""
        asking = min(self.asking, shape[0 if self.by_image else 1])
        if self.by_image:
            return blocks.cut((asking, shape[1]), self.queries_at_once, shape[1])
        return blocks.cut((shape[0], asking), shape[0], self.queries_at_once)

    def of_source(self, source: Similarity, which: Index) -> Cells:
        """Read all scores of some queries from a source."""
        candidates = slice(0, self.candidates)
        if self.by_image:
            return source.block(which, candidates)
        return source.block(candidates, which).T


def mean(sources: Sequence[Scores], weights: Sequence[float]) -> Scores:
    """Average sources; if one has a matrix for each direction, direction by direction."""
    if not any(isinstance(source, PerDirection) for source in sources):
        return WeightedSum(sources, weights)  # type: ignore[arg-type]
    i2t = [of_direction(source, "i2t") for source in sources]
    t2i = [of_direction(source, "t2i") for source in sources]
    return Directions(WeightedSum(i2t, weights), WeightedSum(t2i, weights))


def joint(sources: Sequence[Similarity]) -> EqualRows | None:
    """Find which rows and columns of a sum must get equal scores."""
    of_sources = [source.equal for source in sources]
    computed = [equal for equal in of_sources if equal is not None]
    if not computed:
        return None
    if len(computed) < len(sources):
        # A stored member may differ in any two rows, which only reading it would tell.
        images, captions = sources[0].shape
        return EqualRows(np.arange(images), np.arange(captions))
    of_images, of_captions = zip(*computed, strict=True)
    return EqualRows(_equal_in_all(of_images), _equal_in_all(of_captions))


def _equal_in_all(labels: Sequence[Ids]) -> Ids:
    """Label what has equal labels in all sources."""
    _, joint_labels = np.unique(np.stack(labels), axis=1, return_inverse=True)
    return joint_labels.reshape(-1)


class PerQuery(ABC):
    """A fusion whose scores depend on all candidates of a query, so each direction has its own
    matrix.
    """

    def __init__(self, sources: Sequence[Scores], weights: Sequence[float]) -> None:
        self.sources = sources
        self.weights = weights
        self.shape = sources[0].shape

    @abstractmethod
    def direction(self, name: Direction, block_bytes: int) -> Similarity:
        """The fused scores [I, C] of one direction, see `PerDirection.direction`."""

    def select(self, images: Ids, captions: Ids) -> "PerQuery":
        """Restrict the candidates; scores are fused among those that stay."""
        selected = [select(source, images, captions) for source in self.sources]
        return type(self)(selected, self.weights)
