"""The k best candidates of each query, by given scores or by an index of vectors.

There is one rule for ties, in `best_of_each`, which every index follows: of equally similar
candidates the first come first, in an order that is that of the candidates, or that is drawn for
each query so that no candidate gains by its position.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from pipeline.foundation.evaluation.retrieval.blocks import Cells, Direction, Floats, Ids, Singles
from pipeline.foundation.evaluation.retrieval.similarity import (
    Scores,
    Similarity,
    first_equal,
    of_direction,
    vectors_of,
    whole_queries,
)
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.parts.lazy import LookupTable


class Top(NamedTuple):
    """The k best candidates of each query, best first."""

    places: Ids  # int64 [Q, k], their rows or columns
    scores: Floats  # float64 [Q, k]


class VectorIndex(Protocol):
    """Finds the vectors with the largest inner product with a query. It is built from them: [N, d],
    of length 1.
    """

    def top(self, queries: Singles, k: int) -> Top:
        """Return the rows and inner products of the k nearest vectors of each of the queries,
        float32 [Q, d].

        An exact index finds the earlier one first where two products are equal.
        """


INDEXES: LookupTable[Callable[[np.ndarray], VectorIndex]] = LookupTable(
    {
        "exact": "pipeline.foundation.evaluation.retrieval.nearest:Exact",
    },
    "indexes",
    "index",
)
"""Name -> what finds nearest vectors: in a search, for hard negatives, and candidates for
reranking."""


def places_in(index: VectorIndex, queries: Singles, k: int) -> Ids:
    """Find the rows of each query's k nearest vectors, int64 [Q, k], without products where an
    index can.
    """
    if hasattr(index, "places"):
        places: Ids = index.places(queries, k)
        return places
    return index.top(queries, k).places


def best_of_each(query: Ids, scores: Floats, order: np.ndarray, k: int) -> Ids:
    """Choose the places of each query's k best of P pairs, best first; of equal scores by the
    smaller `order`.
    """
    by_score = np.lexsort((order, -scores, query))
    asked = query[by_score]
    place = np.arange(len(asked)) - np.searchsorted(asked, asked)
    chosen: Ids = by_score[place < k]
    return chosen


def top(
    source: Scores,
    direction: Direction,
    k: int,
    generator: np.random.Generator | None = None,
    block_megabytes: float = 32,
    progress: Callable[[int], object] = lambda queries: None,
) -> Top:
    """Find the k best captions of every image, or the k best images of every caption; all if there
    are fewer.

    Equally similar candidates come in an order that `generator` draws for each query, or without
    one in their own. The result does not depend on the size of blocks.
    """
    block_bytes = int(block_megabytes * 1e6)
    matrix = of_direction(source, direction, block_bytes)
    queries, candidates = matrix.shape
    if direction == "t2i":
        queries, candidates = candidates, queries
    k = min(k, candidates)
    equal_rows = matrix.equal
    equal = None
    if equal_rows is not None:
        labels = equal_rows.captions if direction == "i2t" else equal_rows.images
        equal = first_equal(labels)
    size = (queries, k)
    best = Top(np.empty(size, np.int64), np.empty(size))
    for part, cells in whole_queries(matrix, direction, block_bytes):
        block = cells
        if equal is not None:
            block = cells[:, equal]
        best.places[part], best.scores[part] = _best_of_block(block, k, generator)
        progress(part.stop)
    if equal_rows is None:
        return best
    return _by_pairs(matrix, direction, best)


def _best_of_block(cells: Cells, k: int, generator: np.random.Generator | None) -> Top:
    block = np.ascontiguousarray(cells)
    least = _kth_best(block, k)
    query, place = np.nonzero(block >= least[:, None])
    scores = block[query, place].astype(np.float64)
    order: np.ndarray = place
    if generator is not None:
        order = generator.random(len(place))
    best = best_of_each(query, scores, order, k)
    return Top(place[best].reshape(-1, k), scores[best].reshape(-1, k))


def _kth_best(scores: Cells, k: int) -> Cells:
    place = scores.shape[1] - k
    return np.partition(scores, place, axis=1)[:, place]


def _by_pairs(source: Similarity, direction: Direction, best: Top) -> Top:
    """Read computed scores again, pair by pair, so that they do not depend on the size of
    blocks.
    """
    shape = best.places.shape
    query = np.repeat(np.arange(shape[0]), shape[1])
    candidate = best.places.reshape(-1)
    pairs = (query, candidate)
    if direction == "t2i":
        pairs = (candidate, query)
    scores = np.asarray(source.pairs(*pairs), np.float64).reshape(shape)
    order = np.argsort(-scores, axis=1, kind="stable")
    return Top(np.take_along_axis(best.places, order, 1), np.take_along_axis(scores, order, 1))


def top_of_index(name: str, source: Similarity, direction: Direction, k: int) -> Top:
    """Find the k best candidates by an index of their vectors, of which the scores must be inner
    products.
    """
    vectors = vectors_of(source)
    if vectors is None:
        raise InputError(
            f"the index {name} needs vectors, and these scores are no products of such; leave out the "
            "index, or use a head"
        )
    queries, candidates = vectors
    if direction == "t2i":
        queries, candidates = candidates, queries
    index = INDEXES.find(name)(candidates[:])
    return index.top(np.asarray(queries[:], np.float32), min(k, len(candidates)))
