"""Sums of several similarity sources: one matrix for both directions, or one for each direction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import get_args

import numpy as np

from pipeline.evaluation.retrieval.blocks import Cells, Ids, Index
from pipeline.evaluation.retrieval.similarity import Direction, Directions, EqualRows, PerDirection, Similarity, select

BLOCK_BYTES = 32_000_000
"""Memory for a block of scores, where nobody says how much."""


class WeightedSum:
    """The weighted sum of sources of one shape."""

    def __init__(self, sources: Sequence[Similarity], weights: Sequence[float]) -> None:
        """Hold the sources."""
        self.sources, self.weights = sources, weights
        self.shape = sources[0].shape

    @property
    def equal(self) -> EqualRows | None:
        """Which rows and columns must agree, see `joint`."""
        return joint(self.sources)

    def block(self, images: Index, captions: Index) -> Cells:
        """Sum a block, see `Similarity.block`."""
        return self._sum(source.block(images, captions) for source in self.sources)

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        """Sum single cells, see `Similarity.pairs`."""
        return self._sum(source.pairs(images, captions) for source in self.sources)

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        # The sum, one member and its product with the weight are in memory at once.
        """Cut a shape into blocks as the first source is best read."""
        return self.sources[0].grid(shape, block_bytes // 3)

    def _sum(self, terms: Iterator[Cells]) -> Cells:
        # Product and sum apart, since a fused multiply-add rounds otherwise in one part of a block than in
        # another.
        total = next(terms) * self.weights[0]
        for weight, term in zip(self.weights[1:], terms, strict=True):
            total += term * weight
        return total


def mean(sources: Sequence[Similarity | PerDirection], weights: Sequence[float]) -> Similarity | PerDirection:
    """Average sources, in each direction where one has a matrix for each."""
    if not any(isinstance(source, PerDirection) for source in sources):
        return WeightedSum(sources, weights)  # type: ignore[arg-type]
    return Directions(*(WeightedSum([of_direction(source, name) for source in sources], weights)
                        for name in get_args(Direction)))


def of_direction(source: Similarity | PerDirection, name: Direction, block_bytes: int = BLOCK_BYTES) -> Similarity:
    """Take the matrix by which one direction is ranked."""
    return source.direction(name, block_bytes) if isinstance(source, PerDirection) else source


def joint(sources: Sequence[Similarity]) -> EqualRows | None:
    """Find which rows and columns of a sum must agree."""
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
    """A fusion whose scores depend on all candidates of a query, so each direction has its own matrix.

    A subclass implements `direction`.
    """

    def __init__(self, sources: Sequence[Similarity | PerDirection], weights: Sequence[float]) -> None:
        """Hold the sources."""
        self.sources, self.weights = sources, weights
        self.shape = sources[0].shape

    @abstractmethod
    def direction(self, name: Direction, block_bytes: int) -> Similarity:
        """Fuse for one direction.

        Args:
            name: "i2t" ranks captions for images, "t2i" images for captions.
            block_bytes: The most memory that one block takes.

        Returns:
            The fused scores [I, C].
        """

    def select(self, images: Ids, captions: Ids) -> PerQuery:
        """Restrict the candidates; scores are fused among those that stay."""
        return type(self)([select(source, images, captions) for source in self.sources], self.weights)
