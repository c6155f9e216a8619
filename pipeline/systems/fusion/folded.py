"""Scores that hold within the folds of one protocol: those of reranked systems, and of ensembles of such."""

from __future__ import annotations

import numpy as np

from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.evaluation.retrieval.similarity import Direction, PerDirection, Similarity, select
from pipeline.parts.errors import InputError
from pipeline.systems.fusion.combining import of_direction


class Folded:
    """Scores that were made within folds, and are ranked in no other pool.

    Attributes:
        shape: Images and captions.
    """

    def __init__(self, source: Similarity | PerDirection, folds: tuple[Ids, Ids], name: str,
                 chosen: tuple[Ids, Ids] | None = None) -> None:
        """Hold the source."""
        self.source, self.folds, self.name = source, folds, name
        self.chosen = chosen or (np.arange(source.shape[0]), np.arange(source.shape[1]))
        self.shape = len(self.chosen[0]), len(self.chosen[1])

    def fold(self, image: int) -> tuple[Ids, Ids]:
        """Find the fold of an image, in which its and its captions' candidates were sought."""
        number = self.folds[0][self.chosen[0][image]]
        rows, columns = (np.flatnonzero(fold[chosen] == number)
                         for fold, chosen in zip(self.folds, self.chosen, strict=True))
        return rows, columns

    @property
    def is_whole(self) -> bool:
        """Whether candidates were sought in one pool of all images and captions."""
        return not any(fold.any() for fold in self.folds)

    def select(self, images: Ids, captions: Ids) -> Folded:
        """Restrict the pool. It must be one fold, see `direction`."""
        return Folded(self.source, self.folds, self.name, (self.chosen[0][images], self.chosen[1][captions]))

    def direction(self, name: Direction, block_bytes: int) -> Similarity:
        """Give the matrix of one direction."""
        self.require_one_fold()
        return of_direction(select(self.source, *self.chosen), name, block_bytes)

    def require_one_fold(self) -> None:
        """Check that the pool lies in one fold."""
        pools = [np.unique(fold[chosen]) for fold, chosen in zip(self.folds, self.chosen, strict=True)]
        if any(len(pool) != 1 for pool in pools) or pools[0][0] != pools[1][0] or pools[0][0] < 0:
            raise self.of_another_pool()

    def of_another_pool(self) -> InputError:
        """Compose the refusal of another pool."""
        return InputError(f"candidates were reranked by the protocol {self.name}, which is not the one asked for; "
                          f"measure by {self.name}, or rerank by the other protocol")
