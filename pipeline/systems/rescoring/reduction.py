"""A value of each row or column of similarities, such as the mean of the greatest."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from pipeline.evaluation.retrieval import PerDirection, Similarity
from pipeline.evaluation.retrieval.similarity import Direction, whole_queries
from pipeline.parts.errors import InputError

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
