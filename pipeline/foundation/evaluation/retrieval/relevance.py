"""Relevance: which captions are right for an image and which images for a caption, perhaps with
grades.

It is data, a sparse many-to-many relation. One image per caption, qrels, captions of one text, ECCV
Caption and CxC all become a `Relevance`; ranks and metrics use nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.foundation.evaluation.retrieval.blocks import Floats, Ids
from pipeline.foundation.evaluation.retrieval.owners import renumbered
from pipeline.foundation.parts.errors import InputError


@dataclass(frozen=True, eq=False)
class Positives:
    """The right candidates of each of Q queries: P pairs as a sparse matrix by rows (CSR)."""

    start: Ids  # int64 [Q + 1]; the pairs of query q are start[q] to start[q + 1]
    candidate: Ids  # int64 [P], the right candidates
    grade: Floats | None = None  # float64 [P], how right each is, above 0; None where all are 1

    @classmethod
    def of_pairs(
        cls, query: Ids, candidate: Ids, queries: int, grade: Floats | None = None
    ) -> Positives:
        """The relation of P pairs by query, ascending, and candidate; queries: how many; grade:
        above 0, None for 1.
        """
        start = np.zeros(queries + 1, np.int64)
        np.cumsum(np.bincount(query, minlength=queries), out=start[1:])
        return cls(start, candidate, grade)

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def count(self) -> Ids:
        """How many right candidates each query has: int64 [Q]."""
        return np.diff(self.start)

    @property
    def query(self) -> Ids:
        """The query of each pair: int64 [P]."""
        return np.repeat(np.arange(len(self)), self.count)

    @property
    def grades(self) -> Floats:
        """The grade of each pair: float64 [P]."""
        if self.grade is None:
            return np.ones(len(self.candidate))
        return self.grade

    def part(self, queries: slice) -> tuple[Positives, slice]:
        """The pairs of consecutive queries, counted from the first of them, and their slice of all
        pairs.
        """
        start = self.start[queries.start : queries.stop + 1]
        pairs = slice(int(start[0]), int(start[-1]))
        return Positives(start - start[0], self.candidate[pairs]), pairs

    def best(self, values: np.ndarray) -> np.ndarray:
        """The largest of each query's values [P], one for each pair: [Q], infinity for a query
        without pairs.
        """
        maxima = np.full(len(self), np.inf, values.dtype)
        asking = self.count > 0
        if asking.any():
            maxima[asking] = np.maximum.reduceat(values, self.start[:-1][asking])
        return maxima

    def restricted(self, queries: Ids, candidates: Ids, size: int) -> Positives:
        """The pairs of some queries and candidates (int64), renumbered in the order given; size:
        all candidates.
        """
        place = np.full(size, -1, np.int64)
        place[candidates] = np.arange(len(candidates))
        count = self.count[queries]
        first = self.start[queries] - (np.cumsum(count) - count)
        pairs = np.arange(count.sum()) + np.repeat(first, count)
        query = np.repeat(np.arange(len(queries)), count)
        candidate = place[self.candidate[pairs]]
        inside = candidate >= 0
        grade = None
        if self.grade is not None:
            grade = self.grade[pairs][inside]
        query = query[inside]
        candidate = candidate[inside]
        if (np.diff(candidates) < 0).any():
            order = np.lexsort((candidate, query))
            candidate = candidate[order]
            if grade is not None:
                grade = grade[order]
        return Positives.of_pairs(query, candidate, len(queries), grade)

    def has_pairs_of(self, other: Positives) -> bool:
        """Whether the other relation holds the same pairs, in any order and with any grades."""
        if not np.array_equal(self.start, other.start):
            return False
        mine = np.lexsort((self.candidate, self.query))
        theirs = np.lexsort((other.candidate, other.query))
        return np.array_equal(self.candidate[mine], other.candidate[theirs])

    def equals(self, other: Positives) -> bool:
        """Whether the other relation holds the same pairs in the same order, with the same
        grades.
        """
        return (
            np.array_equal(self.start, other.start)
            and np.array_equal(self.candidate, other.candidate)
            and np.array_equal(self.grades, other.grades)
        )


@dataclass(frozen=True, eq=False)
class Relevance:
    """What is right in a pool of I images and C captions."""

    i2t: Positives  # The right captions of each image
    t2i: Positives  # The right images of each caption
    # int64 [C], the image that each caption was written for, -1 for one that is not in the pool.
    # Protocols cut a pool by it, and intervals draw images together with their captions.
    owner: Ids
    # int64 [P], the place in `t2i` of each pair of `i2t`; None where the directions are two
    # relations, as in ECCV Caption, where only some images and some captions are queries.
    order: Ids | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Images and captions of the pool."""
        return len(self.i2t), len(self.t2i)

    @classmethod
    def of_owner(cls, owner: Ids, images: int) -> Relevance:
        """The relation of one image per caption; owner: int64 [C], its row of so many images, -1
        for none.
        """
        known = np.flatnonzero(owner >= 0)
        t2i = Positives.of_pairs(known, owner[known], len(owner))
        return cls.of_captions(t2i, images, owner)

    @classmethod
    def of_pairs(
        cls,
        image: Ids,
        caption: Ids,
        shape: tuple[int, int],
        grade: Floats | None = None,
        owner: Ids | None = None,
    ) -> Relevance:
        """The relation of any pairs, each of which is right in both directions.

        Args:
            image: Int64 [P], rows of the matrix.
            caption: Int64 [P], columns; no pair twice.
            shape: Images and captions of the pool.
            grade: Float64 [P] above 0; None for 1.
            owner: Int64 [C], as for the class; by default the first right image of each caption.
        """
        images, captions = shape
        order = np.lexsort((image, caption))
        if grade is not None:
            grade = grade[order]
        t2i = Positives.of_pairs(caption[order], image[order], captions, grade)
        return cls.of_captions(t2i, images, owner)

    @classmethod
    def of_directions(cls, i2t: Positives, t2i: Positives, owner: Ids | None = None) -> Relevance:
        """The relation of two, i2t and t2i, which need not agree; owner as for `of_pairs`."""
        if owner is None:
            owner = first_of(t2i)
        return cls(i2t, t2i, owner)

    @classmethod
    def of_captions(cls, t2i: Positives, images: int, owner: Ids | None = None) -> Relevance:
        """The relation of the right images of each caption, t2i, among so many images; owner as for
        `of_pairs`.
        """
        if owner is None:
            owner = first_of(t2i)
        order = np.argsort(t2i.candidate, kind="stable")
        grade = None
        if t2i.grade is not None:
            grade = t2i.grade[order]
        i2t = Positives.of_pairs(t2i.candidate[order], t2i.query[order], images, grade)
        return cls(i2t, t2i, owner, order)

    @property
    def drawn_with(self) -> Ids:
        """The image with which intervals draw each caption: int64 [C].

        It is the caption's own image, or its first right one if that is not in the pool.
        """
        return np.where(self.owner >= 0, self.owner, first_of(self.t2i))

    def select(self, images: Ids, captions: Ids) -> Relevance:
        """The relation among some images and captions, int64 rows and columns in the order that
        they get.
        """
        rows, columns = self.shape
        if np.array_equal(images, np.arange(rows)) and np.array_equal(captions, np.arange(columns)):
            return self
        owner = renumbered(self.owner[captions], images, rows)
        t2i = self.t2i.restricted(captions, images, rows)
        if self.order is not None:
            return self.of_captions(t2i, len(images), owner)
        return Relevance(self.i2t.restricted(images, captions, columns), t2i, owner)

    def ranks_like(self, other: Relevance) -> bool:
        """Whether the best right candidates of the other relation have the same ranks: the same is
        right whatever the grades, and intervals draw captions with the same images.
        """
        return (
            np.array_equal(self.drawn_with, other.drawn_with)
            and self.i2t.has_pairs_of(other.i2t)
            and self.t2i.has_pairs_of(other.t2i)
        )

    def equals(self, other: Relevance) -> bool:
        """Whether the same is right in the other relation, and captions have the same images."""
        return (
            np.array_equal(self.owner, other.owner)
            and self.i2t.equals(other.i2t)
            and self.t2i.equals(other.t2i)
        )


def first_of(t2i: Positives) -> Ids:
    """Find the first right image of each caption."""
    owner = np.full(len(t2i), -1, np.int64)
    asking = t2i.count > 0
    owner[asking] = t2i.candidate[t2i.start[:-1][asking]]
    return owner


def as_relevance(truth: object, shape: tuple[int, int]) -> Relevance:
    """Check what is right in a matrix."""
    if isinstance(truth, Relevance):
        _check_relevance(truth, shape)
        return truth
    owner = np.asarray(truth)
    images, captions = shape
    if owner.shape != (captions,) or owner.dtype.kind not in "iu":
        raise InputError(
            f"caption_image: expected {captions} integers, one for each column of the matrix "
            f"{list(shape)}, received {owner.dtype} {list(owner.shape)}"
        )
    is_wrong = (owner < -1) | (owner >= images)
    if is_wrong.any():
        place = int(np.argmax(is_wrong))
        raise InputError(
            f"caption_image: caption {place} names row {owner[place]}, but the matrix has {images} rows"
        )
    if owner.max() < 0:
        raise InputError(
            "caption_image: no caption has its image in the pool, so there is nothing to rank"
        )
    return Relevance.of_owner(owner.astype(np.int64), images)


def _check_relevance(truth: Relevance, shape: tuple[int, int]) -> None:
    if truth.shape != shape:
        raise InputError(
            f"relevance: expected {shape[0]} images x {shape[1]} captions as the matrix has, received "
            f"{truth.shape[0]} x {truth.shape[1]}"
        )
    fault = without_queries(truth)
    if fault:
        raise InputError(f"relevance: {fault} in the pool, so there is nothing to rank")


def without_queries(relevance: Relevance) -> str:
    """Say which side has no query; "" where images and captions have some."""
    if not len(relevance.i2t.candidate):
        return "no image has a right caption"
    if not len(relevance.t2i.candidate):
        return "no caption has a right image"
    return ""
