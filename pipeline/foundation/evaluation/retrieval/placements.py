"""The rank of every right candidate among all candidates of its query, by sorting each query's
similarities.

`ranks.py` knows the best right one of a query, and is faster. Metrics that ask for all right ones
need this.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from pipeline.foundation.evaluation.retrieval.blocks import Cells, Direction, Ids, cut
from pipeline.foundation.evaluation.retrieval.ranks import Floats, QueryRanks, Ties, check_ties
from pipeline.foundation.evaluation.retrieval.relevance import Positives, Relevance
from pipeline.foundation.evaluation.retrieval.similarity import (
    Scores,
    Similarity,
    WholeQueries,
    first_equal,
    of_direction,
)
from pipeline.foundation.evaluation.retrieval.workers import (
    Block,
    Counter,
    Progress,
    count,
    in_items,
    threads,
)

# The count of candidates above a right one that a list of the best does not have: it is never
# found.
NEVER = 1 << 60


class Groups(NamedTuple):
    """Groups of right candidates of one query that are equally similar; each array is int64 [G]."""

    query: Ids  # the query's position among the Q queries
    above: Ids  # how many candidates are more similar
    tied: Ids  # how many candidates are exactly as similar, right or wrong
    right: Ids  # how many of these are right
    before: Ids  # how many right candidates are more similar


@dataclass(frozen=True, eq=False)
class Placements:
    """All right candidates of the Q queries of one direction, P pairs, the best of each query
    first.
    """

    query: Ids  # int64 [Q], row of the image (i2t) or column of the caption (t2i)
    start: Ids  # int64 [Q + 1]; the pairs of the q-th query are start[q] to start[q + 1]
    # int64 [P], candidates more similar than this one; NEVER for one that is never found.
    above: Ids
    tied: Ids  # int64 [P], candidates exactly as similar, itself included
    grade: Floats  # float64 [P], above 0
    candidates: int  # how many candidates a query has

    @classmethod
    def of(
        cls, positives: Positives, above: Ids, tied: Ids, candidates: int, query: Ids | None = None
    ) -> "Placements":
        """Sort the pairs of each query."""
        if query is None:
            query = np.flatnonzero(positives.count)
        grade = positives.grades
        order = np.lexsort((-grade, above, positives.query))
        start = np.concatenate([[0], np.cumsum(positives.count[query])])
        return cls(query, start, above[order], tied[order], grade[order], candidates)

    def __len__(self) -> int:
        return len(self.query)

    @property
    def count(self) -> Ids:
        """How many right candidates each query has: int64 [Q]."""
        return np.diff(self.start)

    @property
    def owner(self) -> Ids:
        """The place of each pair's query among the Q: int64 [P]."""
        return np.repeat(np.arange(len(self)), self.count)

    def groups(self) -> Groups:
        """Take right candidates that are equally similar together."""
        owner = self.owner
        first = np.ones(len(owner), bool)
        first[1:] = owner[1:] != owner[:-1]
        first[1:] |= self.above[1:] != self.above[:-1]
        begins = np.flatnonzero(first)
        right = np.diff(begins, append=len(owner))
        query = owner[begins]
        before = begins - self.start[query]
        return Groups(query, self.above[begins], self.tied[begins], right, before)

    def at_least(self, grade: float) -> "Placements":
        """Take candidates of a lower grade as wrong."""
        relevant = self.grade >= grade
        count = np.bincount(self.owner[relevant], minlength=len(self))
        start = np.concatenate([[0], np.cumsum(count)])
        return Placements(
            self.query,
            start,
            self.above[relevant],
            self.tied[relevant],
            self.grade[relevant],
            self.candidates,
        )

    def broken(self, ties: Ties) -> "Placements":
        """Break ties for the worst or the best."""
        if check_ties(ties) == "expected":
            return self
        size = self.groups().right
        first = np.repeat(np.cumsum(size) - size, size)
        place = np.arange(len(self.above)) - first
        # Pairs of a group come with falling grade: for the worst the lowest stands first, behind
        # all wrong ones.
        before = self.tied - 1 - place
        if ties == "optimistic":
            before = place
        above = np.where(self.above >= NEVER, NEVER, self.above + before)
        pairs = Positives(self.start, np.zeros(len(above), np.int64), self.grade)
        queries = np.arange(len(self))
        again = Placements.of(pairs, above, np.ones_like(above), self.candidates, queries)
        return replace(again, query=self.query)

    def best(self) -> QueryRanks:
        """Find each query's best right candidate."""
        groups = self.groups()
        first = np.flatnonzero(groups.before == 0)
        query = groups.query[first]
        above = np.full(len(self), NEVER)
        above[query] = groups.above[first]
        right = np.ones(len(self), np.int64)
        right[query] = groups.right[first]
        wrong = np.zeros(len(self), np.int64)
        wrong[query] = np.maximum(groups.tied[first] - groups.right[first], 0)
        wrong[above >= NEVER] = 0
        return QueryRanks(self.query, above, wrong, right)


@runtime_checkable
class Placing(Protocol):
    """Scores that are lists, in which right candidates are looked up, see `lists.Lists`."""

    def place(self, positives: Positives, direction: Direction) -> Placements:
        """The places of the positives, the right candidates of a direction, among those listed;
        `NEVER` for others.
        """


def place(
    source: Scores,
    relevance: Relevance,
    direction: Direction,
    block_megabytes: float = 32,
    progress: Progress | None = None,
) -> Placements:
    """Find the place of every right candidate, and call `progress` with the number of queries
    finished so far.
    """
    by_image = direction == "i2t"
    positives = relevance.i2t if by_image else relevance.t2i
    if isinstance(source, Placing):
        return source.place(positives, direction)
    block_bytes = max(1, int(block_megabytes * 1e6 / threads()))
    source = of_direction(source, direction, block_bytes)
    images, captions = source.shape
    candidates = captions if by_image else images
    blocks = _blocks(source, positives, by_image, block_bytes)
    placer = _Placer(source, positives, by_image)
    above, tied = count(blocks, placer, in_items(progress, 1, candidates))
    return Placements.of(positives, above, tied, candidates)


def _blocks(
    source: Similarity, positives: Positives, by_image: bool, block_bytes: int
) -> Iterator[Block]:
    """Cut the matrix into blocks of whole queries, up to the last query for which anything is
    right.
    """
    if isinstance(source, WholeQueries):
        return source.grid(source.shape, block_bytes)
    images, captions = source.shape
    queries = int(np.flatnonzero(positives.count).max(initial=0)) + 1
    # A block may be of float64, and a copy of it is sorted.
    if by_image:
        return cut((queries, captions), max(1, block_bytes // (16 * captions)), captions)
    return cut((images, queries), images, max(1, block_bytes // (16 * images)))


class _Placer(Counter):
    """Sorts whole queries, and counts around each right candidate: how many are above it, and how
    many tied.
    """

    def __init__(self, source: Similarity, positives: Positives, by_image: bool) -> None:
        self.source = source
        self.positives = positives
        self.by_image = by_image
        pairs = len(positives.candidate)
        self.lengths = (pairs, pairs)
        self.same: Ids | None = None
        equal = source.equal
        if equal is not None:
            self.same = first_equal(equal.captions if by_image else equal.images)

    def add(self, rows: slice, columns: slice) -> None:
        block = self.source.block(rows, columns)
        scores = block
        queries = rows
        if not self.by_image:
            scores = block.T
            queries = columns
        scores = self._to_sort(scores)
        pairs, part = self.positives.part(queries)
        right = scores[pairs.query, pairs.candidate]
        scores.sort(axis=1)
        above, tied = around(scores, right, pairs.start)
        self.counts[0][part] = above
        self.counts[1][part] = tied

    def _to_sort(self, scores: Cells) -> Cells:
        """A copy of scores in which each candidate has its first equal's: products of equal vectors
        may differ by rounding.
        """
        if self.same is None:
            return np.array(scores, order="C")
        return scores[:, self.same]


def around(ordered: Iterable[Cells], right: Cells, start: Ids) -> tuple[Ids, Ids]:
    """Count how many scores of its row, ascending, are above each right one, and how many are equal
    to it.
    """
    above = np.empty(len(right), np.int64)
    tied = np.empty(len(right), np.int64)
    bounds = start.tolist()
    for row, first, last in zip(ordered, bounds[:-1], bounds[1:], strict=True):
        if first < last:
            upper = row.searchsorted(right[first:last], "right")
            lower = row.searchsorted(right[first:last], "left")
            above[first:last] = len(row) - upper
            tied[first:last] = upper - lower
    return above, tied
