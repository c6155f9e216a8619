"""Pools in which equal images, or equal captions, count once: those with equal vectors, or with
equal scores for all of the other side.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from hashlib import blake2b

import numpy as np

from pipeline.foundation.evaluation.retrieval import Direction, Floats, Ids, Positives, Relevance
from pipeline.foundation.evaluation.retrieval.owners import of_owners
from pipeline.foundation.evaluation.retrieval.placements import Placing
from pipeline.foundation.evaluation.retrieval.similarity import (
    BLOCK_BYTES,
    PerDirection,
    Similarity,
    first_equal,
    select,
    whole_queries,
)
from pipeline.judge.explain.given import Given, Read

BYTES = 16  # of a digest of scores


def readings(pool: Given) -> dict[str, Read]:
    """What merges the doubles of each side of a pool."""
    return {
        "doubles of images": partial(_of_images, pool),
        "doubles of captions": partial(_of_captions, pool),
    }


def _of_images(pool: Given) -> Given | None:
    """The pool with the first of equal images alone; None where all differ."""
    first = _first_equal(pool, "i2t")
    if first is None:
        return None
    return _merged(pool, first, np.arange(len(pool.owner)))


def _of_captions(pool: Given) -> Given | None:
    """The pool with the first of equal captions alone, whose texts are then of several images."""
    first = _first_equal(pool, "t2i")
    if first is None:
        return None
    return _merged(replace(pool, captions=None, embed=None), np.arange(pool.images), first)


def _first_equal(pool: Given, way: Direction) -> Ids | None:
    """The first item that is equal to each of the queries of a direction, int64 [Q]; None where
    all differ, and for scores that do not tell.
    """
    scores = pool.scores
    if isinstance(scores, PerDirection | Placing):
        return None
    if scores.equal is None:
        return first_equal(_labels(scores, way))
    if way == "i2t":
        return first_equal(scores.equal.images)
    return first_equal(scores.equal.captions)


def _labels(scores: Similarity, way: Direction) -> Ids:
    """Number the different rows of scores of a direction's queries, int64 [Q]."""
    number_of_row: dict[bytes, int] = {}
    labels: list[int] = []
    for _, cells in whole_queries(scores, way, BLOCK_BYTES):
        for row in np.ascontiguousarray(cells):
            digest = blake2b(row, digest_size=BYTES).digest()
            if np.ptp(row) == 0:
                digest = len(labels).to_bytes(BYTES)  # one score for all tells nothing of it
            labels.append(number_of_row.setdefault(digest, len(number_of_row)))
    return np.array(labels)


def _merged(pool: Given, first_image: Ids, first_caption: Ids) -> Given:
    """The pool of the first of equal images and captions, for which is right what is right for any
    of them.
    """
    images, row = np.unique(first_image, return_inverse=True)
    captions, column = np.unique(first_caption, return_inverse=True)
    owner = of_owners(row, pool.owner)[captions]
    judged = {}
    for name in {*pool.judged, "own"}:
        judged[name] = cache(partial(_merged_relevance, pool.relevance, name, row, column, owner))
    languages = pool.languages
    if languages is not None:
        languages = languages[captions]
    return replace(
        pool,
        owner=owner,
        scores=select(pool.scores, images, captions),
        languages=languages,
        judged=judged,
        of_tools=None,
        others=(),
        otherwise={},
    )


def _merged_relevance(
    of_pool: Callable[[str], Relevance], name: str, row: Ids, column: Ids, owner: Ids
) -> Relevance:
    """The relevance in which each image [I] and caption [C] is the one that it was merged into."""
    relevance = of_pool(name)
    images = int(row.max()) + 1
    captions = int(column.max()) + 1
    t2i = _merged_positives(relevance.t2i, column, row, captions, images)
    if relevance.order is not None:
        return Relevance.of_captions(t2i, images, owner)
    i2t = _merged_positives(relevance.i2t, row, column, images, captions)
    return Relevance.of_directions(i2t, t2i, owner)


def _merged_positives(
    positives: Positives, of_query: Ids, of_candidate: Ids, queries: int, candidates: int
) -> Positives:
    """The pairs of merged queries and candidates, with the largest grade of each."""
    pairs = of_query[positives.query] * candidates + of_candidate[positives.candidate]
    merged, place = np.unique(pairs, return_inverse=True)
    grades: Floats | None = None
    if positives.grade is not None:
        grades = np.zeros(len(merged))
        np.maximum.at(grades, place, positives.grade)
    return Positives.of_pairs(merged // candidates, merged % candidates, queries, grades)
