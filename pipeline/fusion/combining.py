"""Sums of several sources, of one matrix or of one for each direction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from pipeline.retrieval.blocks import Cells, Ids, Index
from pipeline.retrieval.similarity import Direction, EqualRows, Selection, Similarity


class WeightedSum:
    """The sum of sources [I, C] of one shape, each times its weight."""

    def __init__(self, sources: Sequence[Similarity], weights: Sequence[float]) -> None:
        self.sources, self.weights = sources, weights
        self.shape = sources[0].shape

    @property
    def equal(self) -> EqualRows | None:
        return joint(self.sources)

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
        total = next(terms) * self.weights[0]
        for weight, term in zip(self.weights[1:], terms, strict=True):
            total += term * weight
        return total


def joint(sources: Sequence[Similarity]) -> EqualRows | None:
    """Which rows and columns must agree in a sum of these sources.

    Args:
        sources: Of one shape [I, C].

    Returns:
        None if no member is computed. A pair is one that may come out differently if it is in any member; rows are
        equal if they are in all.
    """
    computed = [rows for rows in (source.equal for source in sources) if rows is not None]
    if not computed:
        return None
    if len(computed) < len(sources):
        # A stored member sets every row apart from the others, as far as can be told without reading it.
        images, captions = sources[0].shape
        return EqualRows(np.arange(images), np.arange(captions))
    return EqualRows(*(_joint(labels) for labels in zip(*computed, strict=True)))


def _joint(labels: Sequence[Ids]) -> Ids:
    return np.unique(np.stack(labels), axis=1, return_inverse=True)[1].reshape(-1)


class PerQuery(ABC):
    """A fusion of sources [I, C] by scores that depend on the candidates of each query; a subclass writes `direction`.
    """

    def __init__(self, sources: Sequence[Similarity], weights: Sequence[float]) -> None:
        self.sources, self.weights = sources, weights
        self.shape = sources[0].shape

    @abstractmethod
    def direction(self, name: Direction, block_bytes: int) -> Similarity:
        """The matrix that ranks captions for images ("i2t"), or images for captions ("t2i")."""

    def select(self, images: Ids, captions: Ids) -> PerQuery:
        return type(self)([Selection(source, images, captions) for source in self.sources], self.weights)
