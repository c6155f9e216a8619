"""The k best candidates of each query, by given scores or by an index of vectors.

There is one rule for ties, in `best_of_each`, which every index follows: of equally similar
candidates the first come first, in an order that is that of the candidates, or that is drawn for
each query so that no candidate gains by its position.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from pipeline.evaluation.retrieval.blocks import Cells, Direction, Floats, Ids, Singles
from pipeline.evaluation.retrieval.embeddings import vectors_of
from pipeline.evaluation.retrieval.similarity import Scores, Similarity, of_direction, whole_queries
from pipeline.parts.errors import InputError
from pipeline.parts.lazy import LookupTable


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
        "exact": "pipeline.evaluation.retrieval.nearest:Exact",
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
    places = getattr(index, "places", lambda queries, k: index.top(queries, k).places)
    found: Ids = places(queries, k)
    return found


def best_of_each(query: Ids, scores: Floats, order: np.ndarray, k: int) -> Ids:
    """Choose the places of each query's k best of P pairs, best first; of equal scores by the
    smaller `order`.
    """
    by_score = np.lexsort((order, -scores, query))
    asked = query[by_score]
    chosen: Ids = by_score[np.arange(len(asked)) - np.searchsorted(asked, asked) < k]
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
    queries, candidates = matrix.shape if direction == "i2t" else matrix.shape[::-1]
    k = min(k, candidates)
    labels = None if matrix.equal is None else matrix.equal[1 if direction == "i2t" else 0]
    equal = None if labels is None else first_equal(labels)
    found = Top(np.empty((queries, k), np.int64), np.empty((queries, k)))
    for part, cells in whole_queries(matrix, direction, block_bytes):
        block = np.ascontiguousarray(cells if equal is None else cells[:, equal])
        query, place = np.nonzero(block >= _kth_best(block, k)[:, None])
        scores = block[query, place].astype(np.float64)
        order = place if generator is None else generator.random(len(place))
        best = best_of_each(query, scores, order, k)
        found.places[part], found.scores[part] = (
            place[best].reshape(-1, k),
            scores[best].reshape(-1, k),
        )
        progress(part.stop)
    return found if labels is None else _by_pairs(matrix, direction, found)


def _kth_best(scores: Cells, k: int) -> Cells:
    place = scores.shape[1] - k
    return np.partition(scores, place, axis=1)[:, place]


def first_equal(labels: Ids) -> Ids | None:
    """Find the first row with the label of each, int64 [N]; None if all labels differ."""
    first, group = np.unique(labels, return_index=True, return_inverse=True)[1:]
    return first[group] if len(first) < len(labels) else None


def _by_pairs(source: Similarity, direction: Direction, found: Top) -> Top:
    """Read computed scores again, pair by pair, so that they do not depend on the size of
    blocks.
    """
    query = np.repeat(np.arange(len(found.places)), found.places.shape[1])
    pairs = (
        (query, found.places.reshape(-1))
        if direction == "i2t"
        else (found.places.reshape(-1), query)
    )
    scores = np.asarray(source.pairs(*pairs), np.float64).reshape(found.places.shape)
    order = np.argsort(-scores, axis=1, kind="stable")
    return Top(np.take_along_axis(found.places, order, 1), np.take_along_axis(scores, order, 1))


def top_of_index(name: str, source: Similarity, direction: Direction, k: int) -> Top:
    """Find the k best candidates by an index of their vectors, of which the scores must be inner
    products.
    """
    if (vectors := vectors_of(source)) is None:
        raise InputError(
            f"the index {name} needs vectors, and these scores are no products of such; leave out the "
            "index, or use a head"
        )
    queries, candidates = (each[:] for each in (vectors if direction == "i2t" else vectors[::-1]))
    return INDEXES.find(name)(candidates).top(
        np.asarray(queries, np.float32), min(k, len(candidates))
    )
