"""Ties broken by position, as a sort breaks them: of equally similar candidates the first, or the
last, comes first.
"""

import numpy as np

from pipeline.foundation.evaluation.retrieval.blocks import Direction, Ids
from pipeline.foundation.evaluation.retrieval.ranks import QueryRanks, Ranks
from pipeline.foundation.evaluation.retrieval.relevance import Positives
from pipeline.foundation.evaluation.retrieval.similarity import (
    BLOCK_BYTES,
    Scores,
    of_direction,
    of_queries,
)


def by_position(
    source: Scores, ranks: Ranks, last_first: bool, block_bytes: int = BLOCK_BYTES
) -> Ranks:
    """The ranks that a stable sort gives: a descending one, or an ascending one that is read from
    its end.
    """
    relevance = ranks.relevance
    return Ranks(
        _broken(source, relevance.i2t, ranks.i2t, "i2t", last_first, block_bytes),
        _broken(source, relevance.t2i, ranks.t2i, "t2i", last_first, block_bytes),
        relevance,
    )


def _broken(
    source: Scores,
    positives: Positives,
    ranks: QueryRanks,
    way: Direction,
    last_first: bool,
    block_bytes: int,
) -> QueryRanks:
    matrix = of_direction(source, way, block_bytes)
    tied = np.flatnonzero(ranks.equal)
    before = np.zeros(len(ranks), np.int64)
    size = matrix.shape[1] if way == "i2t" else matrix.shape[0]
    candidates = np.arange(size)
    at_once = max(1, block_bytes // (8 * size))
    for start in range(0, len(tied), at_once):
        part = tied[start : start + at_once]
        query = ranks.query[part]
        cells = np.ascontiguousarray(of_queries(matrix, way, query))
        right = positives.restricted(query, candidates, size)
        before[part] = _before(cells, right, last_first)
    return QueryRanks(ranks.query, ranks.greater + before, np.zeros_like(before), ranks.right)


def _before(cells: np.ndarray, positives: Positives, last_first: bool) -> Ids:
    """Count the wrong candidates of each query that are tied with its best right one and come
    before it.
    """
    candidates = cells.shape[1]
    query = positives.query
    scores = cells[query, positives.candidate]
    best = positives.best(scores)
    tied = cells == best[:, None]
    place = positives.candidate
    if last_first:
        place = candidates - 1 - place
        tied = tied[:, ::-1]
    reached = scores == best[query]
    first = np.full(len(cells), candidates, np.int64)
    np.minimum.at(first, query[reached], place[reached])
    is_before = np.arange(candidates) < first[:, None]
    return np.count_nonzero(tied & is_before, axis=1)
