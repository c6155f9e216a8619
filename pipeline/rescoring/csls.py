"""CSLS corrects hubs: an image or caption that is similar to everything loses what it is similar to on average.

Conneau et al. 2018, "Word Translation Without Parallel Data", section 2.3: with s an entry of the matrix and r the mean
of the k greatest similarities of its row and of its column, CSLS = 2 s - r_row - r_column.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeline.errors import InputError
from pipeline.retrieval import Similarity
from pipeline.retrieval.blocks import Cells, Ids, Index
from pipeline.retrieval.similarity import EqualRows

BLOCK_BYTES = 64 * 2**20


class CSLS:
    """Cross-domain similarity local scaling.

    The neighbours are those of the whole split, also for protocols that divide it into folds. Every query's score then
    depends on the other queries.

    Args:
        neighbours: k, the nearest captions of an image, and images of a caption, whose mean is taken off.

    Raises:
        InputError: If it is below 1.
    """

    def __init__(self, neighbours: int = 10) -> None:
        if neighbours < 1:
            raise InputError(f"csls: neighbours must be at least 1, got {neighbours}")
        self.neighbours = neighbours

    def rescore(self, scores: Similarity) -> Similarity:
        """Take off each row's and each column's mean of its greatest similarities.

        Args:
            scores: [I, C].

        Returns:
            [I, C], 2 s - r_row - r_column.
        """
        images, captions = scores.shape
        tall = max(1, BLOCK_BYTES // (8 * captions))
        every, of_rows = slice(0, captions), []
        best = np.empty((0, captions))
        for start in range(0, images, tall):
            block = np.asarray(scores.block(slice(start, min(start + tall, images)), every), np.float64)
            of_rows.append(_greatest(block.T, self.neighbours).mean(0))
            best = _greatest(np.concatenate([best, block]), self.neighbours)
        return _Lowered(scores, np.concatenate(of_rows), best.mean(0))


def _greatest(values: np.ndarray, k: int) -> np.ndarray:
    """The k greatest of each column of [N, M], sorted: their mean does not depend on the blocks. All where N <= k."""
    return np.sort(values if len(values) <= k else np.partition(values, len(values) - k, axis=0)[-k:], axis=0)


class _Lowered:
    """Twice the similarities [I, C], less a value of the row and one of the column."""

    def __init__(self, source: Similarity, of_rows: np.ndarray, of_columns: np.ndarray) -> None:
        self.source, self.of_rows, self.of_columns = source, of_rows, of_columns
        self.shape = source.shape

    @property
    def equal(self) -> EqualRows | None:
        return self.source.equal  # equal rows have equal neighbours

    def block(self, images: Index, captions: Index) -> Cells:
        return (2 * self.source.block(images, captions) - self.of_rows[images][:, None] - self.of_columns[captions]
                ).astype(np.float32)

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        return (2 * self.source.pairs(images, captions) - self.of_rows[images] - self.of_columns[captions]
                ).astype(np.float32)

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        return self.source.grid(shape, block_bytes // 4)
