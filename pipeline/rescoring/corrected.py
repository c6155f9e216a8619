"""Similarities less a value of each candidate: for both directions in one matrix, or for one direction."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from pipeline.retrieval import Similarity
from pipeline.retrieval.blocks import Cells, Ids, Index
from pipeline.retrieval.similarity import EqualRows

Values = npt.NDArray[np.float64]


class Lowered:
    """A multiple of the similarities [I, C], less a value of the row and one of the column.

    For an image's ranking of captions the row's value changes nothing, nor the column's for a caption's ranking of
    images. So one matrix serves both directions.
    """

    def __init__(self, source: Similarity, of_rows: Values, of_columns: Values, scale: float = 1) -> None:
        """Hold the source.

        Args:
            source: Similarities [I, C].
            of_rows: [I].
            of_columns: [C].
            scale: What the similarities are multiplied by.
        """
        self.source, self.of_rows, self.of_columns, self.scale = source, of_rows, of_columns, scale
        self.shape = source.shape

    @property
    def equal(self) -> EqualRows | None:
        """Which rows and columns must agree: equal rows have equal values."""
        return self.source.equal

    def block(self, images: Index, captions: Index) -> Cells:
        """Correct a block, see `Similarity.block`.

        Args:
            images: Its rows.
            captions: Its columns.

        Returns:
            Float32 [rows, columns].
        """
        cells = np.asarray(self.source.block(images, captions), np.float64) * self.scale
        return (cells - self.of_rows[images][:, None] - self.of_columns[captions]).astype(np.float32)

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        """Correct single cells, see `Similarity.pairs`.

        Args:
            images: Int64 [n], their rows.
            captions: Int64 [n], their columns.

        Returns:
            Float32 [n].
        """
        cells = np.asarray(self.source.pairs(images, captions), np.float64) * self.scale
        return (cells - self.of_rows[images] - self.of_columns[captions]).astype(np.float32)

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """Cut a shape into blocks as the source is best read.

        Args:
            shape: Images and captions.
            block_bytes: The most memory that one block and its copies take.

        Returns:
            The rows and columns of each block.
        """
        return self.source.grid(shape, block_bytes // 4)


Correct = Callable[[npt.NDArray[np.float64], Ids, Ids], npt.NDArray[np.float64]]
"""From cells in float64, the query of each and the candidate of each, in shapes that fit together: new cells."""


class ForDirection:
    """Similarities [I, C] corrected for one direction."""

    def __init__(self, source: Similarity, by_image: bool, correct: Correct) -> None:
        """Hold the source.

        Args:
            source: Similarities [I, C].
            by_image: Whether images are the queries, or captions.
            correct: Computes the new cells.
        """
        self.source, self.by_image, self.correct = source, by_image, correct
        self.shape = source.shape

    @property
    def equal(self) -> EqualRows | None:
        """Which rows and columns must agree: equal rows have equal values."""
        return self.source.equal

    def block(self, images: Index, captions: Index) -> Cells:
        """Correct a block, see `Similarity.block`.

        Args:
            images: Its rows.
            captions: Its columns.

        Returns:
            Float32 [rows, columns].
        """
        rows, columns = np.arange(self.shape[0])[images][:, None], np.arange(self.shape[1])[captions][None]
        return self._corrected(self.source.block(images, captions), rows, columns)

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        """Correct single cells, see `Similarity.pairs`.

        Args:
            images: Int64 [n], their rows.
            captions: Int64 [n], their columns.

        Returns:
            Float32 [n].
        """
        return self._corrected(self.source.pairs(images, captions), images, captions)

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """Cut a shape into blocks as the source is best read.

        Args:
            shape: Images and captions.
            block_bytes: The most memory that one block and its copies take.

        Returns:
            The rows and columns of each block.
        """
        return self.source.grid(shape, block_bytes // 6)

    def _corrected(self, cells: Cells, images: Ids, captions: Ids) -> Cells:
        query, candidate = (images, captions) if self.by_image else (captions, images)
        return self.correct(np.asarray(cells, np.float64), query, candidate).astype(np.float32)
