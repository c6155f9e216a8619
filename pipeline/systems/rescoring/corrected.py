"""Similarities less a value of each candidate: for both directions in one matrix, or for one direction."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from pipeline.evaluation.retrieval import Similarity
from pipeline.evaluation.retrieval.blocks import Cells, Ids, Index
from pipeline.evaluation.retrieval.similarity import EqualRows

Values = npt.NDArray[np.float64]


class Corrected(ABC):
    """Similarities [I, C] computed cell by cell from a source's."""

    COPIES = 4
    """How many times the memory of a block its computation takes."""

    def __init__(self, source: Similarity) -> None:
        self.source, self.shape = source, source.shape

    @property
    def equal(self) -> EqualRows | None:
        """Which rows and columns must agree: equal rows have equal values."""
        return self.source.equal

    @abstractmethod
    def corrected(self, cells: Values, images: Ids, captions: Ids) -> Values:
        """Compute new cells.

        Args:
            cells: Float64, the source's.
            images: Int64, the row of each cell, in a shape that fits.
            captions: Int64, the column of each cell, likewise.

        Returns:
            Float64, in the shape of `cells`.
        """

    def block(self, images: Index, captions: Index) -> Cells:
        """Correct a block, see `Similarity.block`."""
        rows, columns = np.arange(self.shape[0])[images][:, None], np.arange(self.shape[1])[captions][None]
        return self._rounded(self.source.block(images, captions), rows, columns)

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        """Correct single cells, see `Similarity.pairs`."""
        return self._rounded(self.source.pairs(images, captions), images, captions)

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """Cut a shape into blocks as the source is best read, see `Similarity.grid`."""
        return self.source.grid(shape, block_bytes // self.COPIES)

    def _rounded(self, cells: Cells, images: Ids, captions: Ids) -> Cells:
        return self.corrected(np.asarray(cells, np.float64), images, captions).astype(np.float32)


class Lowered(Corrected):
    """A multiple of the similarities [I, C], less a value of the row and one of the column.

    For an image's ranking of captions the row's value changes nothing, nor the column's for a caption's ranking of
    images. So one matrix serves both directions.

    Args:
        source: Similarities [I, C].
        of_rows: [I].
        of_columns: [C].
        scale: What the similarities are multiplied by.
    """

    def __init__(self, source: Similarity, of_rows: Values, of_columns: Values, scale: float = 1) -> None:
        super().__init__(source)
        self.of_rows, self.of_columns, self.scale = of_rows, of_columns, scale

    def corrected(self, cells: Values, images: Ids, captions: Ids) -> Values:
        return np.asarray(cells * self.scale - self.of_rows[images] - self.of_columns[captions])


Correct = Callable[[Values, Ids, Ids], Values]
"""From cells in float64, the query of each and the candidate of each, in shapes that fit together: new cells."""


class ForDirection(Corrected):
    """Similarities [I, C] corrected for one direction.

    Args:
        source: Similarities [I, C].
        by_image: Whether images are the queries, or captions.
        correct: Computes the new cells.
    """

    COPIES = 6

    def __init__(self, source: Similarity, by_image: bool, correct: Correct) -> None:
        super().__init__(source)
        self.by_image, self.correct = by_image, correct

    def corrected(self, cells: Values, images: Ids, captions: Ids) -> Values:
        return self.correct(cells, *((images, captions) if self.by_image else (captions, images)))
