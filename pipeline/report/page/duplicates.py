"""Candidates that no query can tell apart, and vectors that nearly agree."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pipeline.evaluation.retrieval import Floats, Ids, Scores, Similarity
from pipeline.evaluation.retrieval.collection import Side
from pipeline.evaluation.retrieval.embeddings import digests
from pipeline.evaluation.retrieval.similarity import of_direction, of_queries

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
    by_image, by_caption = (
        of_direction(source, "t2i"),
        of_direction(source, "i2t"),
    )  # whose candidates these are
    return {"image": _equal(by_image, 0), "caption": _equal(by_caption, 1)}


def _equal(source: Similarity, axis: int) -> list[Ids]:
    if source.equal is not None:
        return _groups(np.asarray(source.equal[axis], np.float64))
    # Weighted sums tell most candidates apart in one read; those whose sums agree are compared.
    count, queries = source.shape[axis], source.shape[1 - axis]
    weights, sums = np.random.default_rng(0).random(queries), np.zeros(count)
    for part in _parts(source.shape[0], source.shape[1]):
        block = np.asarray(source.block(part, slice(0, source.shape[1])), np.float64)
        if axis == 0:
            sums[part] = block @ weights
        else:
            sums += weights[part] @ block
    alike = []
    for group in _groups(sums):
        scores = of_queries(source, "i2t" if axis == 0 else "t2i", group)
        label, size = np.unique(digests(scores), return_inverse=True, return_counts=True)[1:]
        alike += [group[label == each] for each in np.flatnonzero(size > 1)]
    return alike


def _parts(count: int, width: int) -> Iterator[slice]:
    step = max(1, CELLS // max(width, 1))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def _groups(sums: Floats) -> list[Ids]:
    """The positions of sums that agree up to rounding, two or more each."""
    order = np.argsort(sums, kind="stable")
    apart = np.diff(sums[order]) > 1e-12 * np.abs(sums[order][1:]) + 1e-300
    return [
        np.sort(group) for group in np.split(order, np.flatnonzero(apart) + 1) if len(group) > 1
    ]


def nearly_equal(vectors: Floats, most: int) -> tuple[int, list[Near]]:
    """Count the pairs of vectors [N, D] with a cosine of `ALIKE` or more, and list the closest,
    best first.
    """
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, length, out=np.zeros(vectors.shape, np.float32), where=length > 0)
    count, closest = 0, list[Near]()
    for part in _parts(len(unit), len(unit)):
        cosines = unit[part] @ unit.T
        first, second = np.nonzero(cosines >= ALIKE)
        first = first + part.start
        first, second = first[second > first], second[second > first]
        count += len(first)
        values = cosines[first - part.start, second]
        closest += [
            Near(int(first[at]), int(second[at]), float(values[at]))
            for at in np.argsort(-values, kind="stable")[:most]
        ]
        closest = sorted(closest, key=lambda pair: -pair.cosine)[:most]
    return count, closest
