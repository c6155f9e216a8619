"""Candidates with equal scores for every query, and vectors that nearly agree."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pipeline.foundation.evaluation.retrieval import Direction, Floats, Ids, Scores, Similarity
from pipeline.foundation.evaluation.retrieval.collection import Side
from pipeline.foundation.evaluation.retrieval.embeddings import digests
from pipeline.foundation.evaluation.retrieval.similarity import of_direction, of_queries

CELLS = 16_000_000  # scores or cosines in memory at once
ALIKE = 0.99  # the cosine from which two vectors count as near duplicates


class Near(NamedTuple):
    """Two candidates whose vectors nearly agree."""

    first: int
    second: int
    cosine: float


def with_equal_scores(source: Scores) -> dict[Side, list[Ids]]:
    """Group the images, and the captions, that have exactly equal scores: positions, int64, in
    ascending order.
    """
    # The candidates of t2i are images, those of i2t captions.
    images = _equal(of_direction(source, "t2i"), 0)
    captions = _equal(of_direction(source, "i2t"), 1)
    return {"image": images, "caption": captions}


def _equal(source: Similarity, axis: int) -> list[Ids]:
    if source.equal is not None:
        return _groups(np.asarray(source.equal[axis], np.float64))
    # Weighted sums tell most candidates apart in one read; those whose sums agree are compared.
    images, captions = source.shape
    weights = np.random.default_rng(0).random(source.shape[1 - axis])
    sums = np.zeros(source.shape[axis])
    for part in _parts(images, captions):
        block = np.asarray(source.block(part, slice(0, captions)), np.float64)
        if axis == 0:
            sums[part] = block @ weights
        else:
            sums += weights[part] @ block
    way: Direction = "i2t" if axis == 0 else "t2i"
    alike = []
    for group in _groups(sums):
        scores = digests(of_queries(source, way, group))
        _, label, size = np.unique(scores, return_inverse=True, return_counts=True)
        alike += [group[label == number] for number in np.flatnonzero(size > 1)]
    return alike


def _parts(count: int, width: int) -> Iterator[slice]:
    step = max(1, CELLS // max(width, 1))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def _groups(sums: Floats) -> list[Ids]:
    """The positions of sums that agree up to rounding, two or more each."""
    order = np.argsort(sums, kind="stable")
    ascending = sums[order]
    is_apart = np.diff(ascending) > 1e-12 * np.abs(ascending[1:]) + 1e-300
    groups = np.split(order, np.flatnonzero(is_apart) + 1)
    return [np.sort(group) for group in groups if len(group) > 1]


def nearly_equal(vectors: Floats, most: int) -> tuple[int, list[Near]]:
    """Count the pairs of vectors [N, D] with a cosine of `ALIKE` or more, and list the closest,
    best first.
    """
    vector_lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit_vectors = np.divide(
        vectors, vector_lengths, out=np.zeros(vectors.shape, np.float32), where=vector_lengths > 0
    )
    count = 0
    closest: list[Near] = []
    for part in _parts(len(unit_vectors), len(unit_vectors)):
        cosines = unit_vectors[part] @ unit_vectors.T
        rows, second = np.nonzero(cosines >= ALIKE)
        first = rows + part.start
        is_pair = second > first
        count += int(is_pair.sum())
        first = first[is_pair]
        second = second[is_pair]
        cosine_of_pair = cosines[rows[is_pair], second]
        for pair in np.argsort(-cosine_of_pair, kind="stable")[:most]:
            cosine = float(cosine_of_pair[pair])
            closest.append(Near(int(first[pair]), int(second[pair]), cosine))
        closest = sorted(closest, key=lambda pair: -pair.cosine)[:most]
    return count, closest
