"""What corrections are made of: a value of each row or column of similarities, and similarities less such values."""

from abc import abstractmethod
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from pipeline.evaluation.retrieval import Cells, Direction, Ids, PerDirection, Similarity
from pipeline.evaluation.retrieval.similarity import whole_queries
from pipeline.parts.errors import InputError
from pipeline.systems.fusion.combining import CellByCell

BLOCK_BYTES = 64 * 2**20
Values = npt.NDArray[np.float64]


def blocks(scores: Similarity | PerDirection, direction: Direction) -> Iterator[Values]:
    """Read whole queries, as rows: images for i2t, captions for t2i."""
    for _, cells in whole_queries(scores, direction, BLOCK_BYTES):
        yield np.ascontiguousarray(cells, np.float64)


def of_rows(scores: Similarity, value: Callable[[Values], Values]) -> Values:
    """Compute a value of each row."""
    return np.concatenate([value(block) for block in blocks(scores, "i2t")])


def of_columns(scores: Similarity, value: Callable[[Values], Values]) -> Values:
    """Compute a value of each column."""
    return np.concatenate([value(block) for block in blocks(scores, "t2i")])


def mean_of_greatest(k: int) -> Callable[[Values], Values]:
    """Make the mean of each row's k greatest values."""
    def mean(rows: Values) -> Values:
        width = rows.shape[1]
        best = rows if width <= k else np.partition(rows, width - k, axis=1)[:, -k:]
        return np.asarray(np.sort(best, axis=1).mean(1))  # sorted, so that equal rows have equal means

    return mean


def log_sum_exp(beta: float) -> Callable[[Values], Values]:
    """Make the logarithm of each row's sum of exp(β s), which does not overflow."""
    def total(rows: Values) -> Values:
        scaled = beta * rows
        greatest = scaled.max(1)
        return np.asarray(greatest + np.log(np.exp(scaled - greatest[:, None]).sum(1)))

    return total


def check_beta(name: str, beta: float) -> float:
    """Check an inverse temperature."""
    if not 0 < beta < float("inf"):
        raise InputError(f"{name}: beta must be above 0 and finite, got {beta}")
    return beta


class Corrected(CellByCell):
    """Similarities [I, C] computed cell by cell from a source's, in float64, and rounded to float32."""

    copies = 4

    def __init__(self, source: Similarity) -> None:
        super().__init__([source])

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

    def cells(self, parts: Iterator[Cells], images: Ids, captions: Ids) -> Cells:
        return self.corrected(np.asarray(next(parts), np.float64), images, captions).astype(np.float32)


class Lowered(Corrected):
    """A multiple of the similarities [I, C], less a value of the row [I] and one of the column [C].

    For an image's ranking of captions the row's value changes nothing, nor the column's for a caption's ranking of
    images. So one matrix serves both directions.
    """

    def __init__(self, source: Similarity, of_rows: Values, of_columns: Values, scale: float = 1) -> None:
        super().__init__(source)
        self.of_rows, self.of_columns, self.scale = of_rows, of_columns, scale

    def corrected(self, cells: Values, images: Ids, captions: Ids) -> Values:
        return np.asarray(cells * self.scale - self.of_rows[images] - self.of_columns[captions])


Correct = Callable[[Values, Ids, Ids], Values]
"""From cells in float64, the query of each and the candidate of each, in shapes that fit together: new cells."""


class ForDirection(Corrected):
    """Similarities [I, C] corrected for one direction, in which images are the queries, or captions."""

    copies = 6

    def __init__(self, source: Similarity, by_image: bool, correct: Correct) -> None:
        super().__init__(source)
        self.by_image, self.correct = by_image, correct

    def corrected(self, cells: Values, images: Ids, captions: Ids) -> Values:
        return self.correct(cells, *((images, captions) if self.by_image else (captions, images)))
