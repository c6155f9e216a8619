"""Sums of several sources, and scores rescaled among a query's candidates before they are summed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pipeline.retrieval.blocks import Cells, Ids, Index, cut
from pipeline.retrieval.similarity import Direction, EqualRows, Selection, Similarity

if TYPE_CHECKING:
    from torch import Tensor

# From all candidates' scores along the last dimension [..., n] to their new ones, float64.
Rescale: TypeAlias = "Callable[[Tensor], Tensor]"

# What rescaling takes at its peak for each cell: two copies in float64 and three in int64.
BYTES_A_CELL = 40


class WeightedSum:
    """The sum of sources [I, C] of one shape, each times its weight."""

    def __init__(self, sources: Sequence[Similarity], weights: Sequence[float]) -> None:
        self.sources, self.weights = sources, weights
        self.shape = sources[0].shape

    @property
    def equal(self) -> EqualRows | None:
        """A pair is one that may come out differently if it is in any member; rows are equal if they are in
        all.
        """
        computed = [rows for rows in (source.equal for source in self.sources) if rows is not None]
        if not computed:
            return None
        if len(computed) < len(self.sources):
            # A stored member sets every row apart from the others, as far as can be told without reading it.
            return EqualRows(np.arange(self.shape[0]), np.arange(self.shape[1]))
        return EqualRows(*(_joint(labels) for labels in zip(*computed, strict=True)))

    def block(self, images: Index, captions: Index) -> Cells:
        return self._sum(source.block(images, captions) for source in self.sources)

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        return self._sum(source.pairs(images, captions) for source in self.sources)

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        # The sum, one member and its product with the weight are in memory at once.
        return self.sources[0].grid(shape, block_bytes // 3)

    def _sum(self, terms: Iterator[Cells]) -> Cells:
        # Product and sum apart, since a fused multiply-add rounds otherwise in one part of a block than in
        # another.
        total: Cells = next(terms) * self.weights[0]
        for weight, term in zip(self.weights[1:], terms, strict=True):
            total += term * weight
        return total


def _joint(labels: Sequence[Ids]) -> Ids:
    return np.unique(np.stack(labels), axis=1, return_inverse=True)[1].reshape(-1)


def standardise(scores: Tensor) -> Tensor:
    """Mean 0 and standard deviation 1 along the last dimension; 0 where all scores are equal."""
    scores = scores.double()
    constant = scores.amin(-1, keepdim=True) == scores.amax(-1, keepdim=True)
    deviation = scores - scores.mean(-1, keepdim=True)
    spread = deviation.square().mean(-1, keepdim=True).sqrt()
    return (deviation / spread.masked_fill(constant, 1)).masked_fill(constant, 0)


def reciprocal_ranks(scores: Tensor, offset: float = 60) -> Tensor:
    """1 / (offset + rank) along the last dimension, where tied scores share their mean rank."""
    import torch

    scores = scores.contiguous()
    ascending = scores.sort(-1).values
    up_to = torch.searchsorted(ascending, scores, right=True)
    below = torch.searchsorted(ascending, scores)
    return 1 / (offset + scores.shape[-1] - (up_to + below - 1).double() / 2)


class Rescaled:
    """A source [I, C] whose scores are rescaled among all candidates of each query, which are read together.

    `block_bytes` bounds what one block and its rescaling take, unless the candidates of a single query take
    more.
    """

    def __init__(self, source: Similarity, rescale: Rescale, direction: Direction, block_bytes: int) -> None:
        self.source, self.rescale = source, rescale
        self.shape, self.equal = source.shape, source.equal
        self.by_image = direction == "i2t"
        candidates = self.shape[1] if self.by_image else self.shape[0]
        self.queries_at_once = max(1, block_bytes // (BYTES_A_CELL * candidates))

    def block(self, images: Index, captions: Index) -> Cells:
        import torch

        if self.by_image:
            scores = self.source.block(images, slice(0, self.shape[1]))
            return self.rescale(torch.from_numpy(scores)).numpy()[:, captions]
        scores = self.source.block(slice(0, self.shape[0]), captions)
        return self.rescale(torch.from_numpy(scores).T.contiguous()).T.numpy()[images]

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        # Read in the blocks of the grid, so that a cell is rounded as it will be when the grid is walked
        # again.
        cells = np.empty(len(images), np.float64)
        query = images if self.by_image else captions
        order = np.argsort(query, kind="stable")
        for rows, columns in self.grid(self.shape, 0):
            part = rows if self.by_image else columns
            first, last = np.searchsorted(query[order], (part.start, part.stop))
            here = order[first:last]
            if len(here):
                block = self.block(rows, columns)
                cells[here] = block[images[here] - rows.start, captions[here] - columns.start]
        return cells

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """Blocks of whole queries, always the same ones."""
        return cut(shape, *((self.queries_at_once, shape[1]) if self.by_image else (shape[0], self.queries_at_once)))


class PerQuery:
    """The weighted sum of sources [I, C] that are rescaled among each query's candidates."""

    def __init__(self, rescale: Rescale, sources: Sequence[Similarity], weights: Sequence[float]) -> None:
        self.rescale, self.sources, self.weights = rescale, sources, weights
        self.shape = sources[0].shape

    def direction(self, name: Direction, block_bytes: int) -> Similarity:
        import torch  # noqa: F401 (before blocks are shared among threads, whose number is torch's)

        rescaled = [Rescaled(source, self.rescale, name, block_bytes) for source in self.sources]
        return WeightedSum(rescaled, self.weights)

    def select(self, images: Ids, captions: Ids) -> PerQuery:
        sources = [Selection(source, images, captions) for source in self.sources]
        return PerQuery(self.rescale, sources, self.weights)
