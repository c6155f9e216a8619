"""Hubs: candidates that are among the best of a bank's queries."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from pipeline.rescoring.reduction import Values

Marks = npt.NDArray[np.bool_]


def best(queries: Values, k: int) -> Marks:
    """Mark the k best candidates of each query."""
    width = queries.shape[1]
    if k >= width:
        return np.ones(queries.shape, bool)
    return np.asarray(queries >= np.partition(queries, width - k, axis=1)[:, width - k][:, None])


def hubs(blocks: Iterable[Values], k: int) -> Marks:
    """Find the candidates that are among the k best of any query."""
    return np.asarray(np.logical_or.reduce([best(block, k).any(0) for block in blocks]))
