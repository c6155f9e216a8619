"""Scores of each query's best candidates alone, as runs and nearest-neighbour searches list
them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pipeline.foundation.evaluation.retrieval.blocks import Direction, Floats, Ids, Marks
from pipeline.foundation.evaluation.retrieval.placements import NEVER, Placements, around
from pipeline.foundation.evaluation.retrieval.relevance import Positives
from pipeline.foundation.evaluation.retrieval.similarity import Similarity
from pipeline.foundation.parts.errors import InputError, counted

# The logarithm of one by the chance that lists in no order look ordered.
CHANCE = math.log(1e6)
# The share of steps against the order that ranks allow, which tools may have given to unsorted or
# rounded scores.
ROUGHLY = 0.05
# Lists, evenly from all, in which the places of right candidates are looked at.
LOOKED_AT = 1000


class Listed(NamedTuple):
    """What is listed of one direction: n pairs in any order."""

    query: Ids  # int64 [n], rows of images (i2t) or columns of captions (t2i)
    candidate: Ids  # int64 [n], of the other side
    score: Floats  # float64 [n], finite


class Order(NamedTuple):
    """How the scores of lists go with the places of their candidates, as a file has them."""

    falls: bool  # whether they fall from the first candidate to the last one
    rises: bool  # whether they rise; neither where that is not known
    of_ranks: bool = False  # whether the file has ranks, and candidates are in their order
    are_places: bool = False  # whether they number each query's candidates from 0 or 1
    is_reversed: bool = False  # whether the scores are distances, as the user says


class Before(NamedTuple):
    """Whether right candidates stand before the wrong ones of their lists."""

    share: float  # of pairs of both, 0.5 by chance
    deviation: float  # from chance, in standard deviations of lists in random order


UNKNOWN_ORDER = Order(False, False)


class Lists:
    """Each query's best candidates with their scores. A candidate that is not listed is never
    found.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        listed: Mapping[Direction, Listed],
        name: str,
        order: Order = UNKNOWN_ORDER,
    ) -> None:
        """Hold the lists of a pool [I, C], each pair once; a direction may lack. name: the file,
        for messages.
        """
        self.shape = shape
        self.name = name
        self.listed = dict(listed)
        self.order = order
        # Whether a query without a list is none of the pool's, see `Layout.has_all_queries`.
        self.has_all_queries = False
        # The captions whose list is there and empty: rows of the pool.
        self.unanswered: Ids = np.empty(0, np.int64)
        # Whether each list has every candidate of its query, see `Layout.has_all_candidates`.
        self.are_whole = False
        # A candidate as a file writes it, for messages; "" where there is none.
        self.example = ""
        # What the user types behind the file, to choose in it.
        self.parts: Sequence[str] = ()

    def direction(self, name: Direction, block_bytes: int) -> Similarity:
        """Refuse what needs every score, see `PerDirection.direction`.

        Raises:
            InputError: Always.
        """
        raise InputError(
            f"{self.name}: lists each query's best candidates alone, and this needs every pair's score"
        )

    def select(self, images: Ids, captions: Ids) -> "Lists":
        """Restrict the lists to some queries and candidates, see `PerDirection.select`."""
        row = _places(images, self.shape[0])
        column = _places(captions, self.shape[1])
        selected: dict[Direction, Listed] = {}
        for way, listed in self.listed.items():
            if way == "i2t":
                query = row[listed.query]
                candidate = column[listed.candidate]
            else:
                query = column[listed.query]
                candidate = row[listed.candidate]
            inside = (query >= 0) & (candidate >= 0)
            selected[way] = Listed(query[inside], candidate[inside], listed.score[inside])
        return self._like((len(images), len(captions)), selected, self.order)

    def within(self, shape: tuple[int, int], images: Ids, captions: Ids) -> "Lists":
        """The same lists in a larger pool.

        Args:
            shape: The size of the pool, [I, C].
            images: Int64, where each image is in it, ascending.
            captions: Likewise.

        Returns:
            Lists of the pool, in which all other candidates are never found.
        """
        listed: dict[Direction, Listed] = {}
        for way, rows in self.listed.items():
            if way == "i2t":
                query = images[rows.query]
                candidate = captions[rows.candidate]
            else:
                query = captions[rows.query]
                candidate = images[rows.candidate]
            listed[way] = Listed(query, candidate, rows.score)
        lists = self._like(shape, listed, self.order)
        lists.has_all_queries = self.has_all_queries
        lists.unanswered = captions[self.unanswered]
        return lists

    def _like(
        self, shape: tuple[int, int], listed: Mapping[Direction, Listed], order: Order
    ) -> "Lists":
        """Other lists of the same file."""
        lists = Lists(shape, listed, self.name, order)
        lists.are_whole = self.are_whole
        lists.example = self.example
        lists.parts = self.parts
        return lists

    def reversed(self) -> "Lists":
        """The lists of distances, of which the smallest is best."""
        order = self.order._replace(
            falls=self.order.rises, rises=self.order.falls, is_reversed=not self.order.is_reversed
        )
        return self.changed(np.negative, order)

    def changed(self, change: Callable[[Floats], Floats], order: Order = UNKNOWN_ORDER) -> "Lists":
        """The same pairs with other scores.

        Args:
            change: Makes the scores, float64 [n], from those that the pairs have.
            order: How they go with the places of the candidates.
        """
        changed: dict[Direction, Listed] = {}
        for way, listed in self.listed.items():
            changed[way] = listed._replace(score=change(listed.score))
        return self._like(self.shape, changed, order)

    def longest(self, direction: Direction) -> int:
        """The number of candidates in the longest list of a direction, the cut-off of the lists."""
        if direction not in self.listed:
            return 0
        return int(np.bincount(self.listed[direction].query).max(initial=0))

    def has_pairs_of(self, other: "Lists", direction: Direction) -> bool:
        """Whether each query has the same candidates in other lists.

        Args:
            other: The other lists.
            direction: The direction that is compared, which both have.

        Returns:
            False also for lists of a pool of another size.
        """
        if self.shape != other.shape:
            return False
        mine, theirs = (
            np.sort(
                each.listed[direction].query * max(self.shape) + each.listed[direction].candidate
            )
            for each in (self, other)
        )
        return np.array_equal(mine, theirs)

    def unlisted(self, positives: Positives, direction: Direction) -> int:
        """The number of a direction's queries with positives that are not listed."""
        if direction not in self.listed:
            return 0
        has_none = np.ones(len(positives), bool)
        has_none[self.listed[direction].query] = False
        return int(np.count_nonzero(has_none & (positives.count > 0)))

    def right_before_wrong(self, positives: Positives, direction: Direction) -> "Before":
        """The share of positives before other candidates in the lists of a direction."""
        if direction not in self.listed:
            return Before(0.5, 0.0)
        listed = self.listed[direction]
        asking = np.unique(listed.query)
        looked_at = np.zeros(len(positives), bool)
        looked_at[asking[:: 1 + len(asking) // LOOKED_AT]] = True
        chosen = looked_at[listed.query]
        query = listed.query[chosen]
        candidate = listed.candidate[chosen]
        size = self.shape[1] if direction == "i2t" else self.shape[0]
        right_pairs = positives.query * size + positives.candidate
        is_right = np.isin(query * size + candidate, right_pairs)
        return _before(query, listed.score[chosen], is_right)

    def place(self, positives: Positives, direction: Direction) -> Placements:
        """The places of the positives of a direction, `NEVER` for one not listed; one without any
        list has no queries.

        Raises:
            InputError: If no query that is listed has a right candidate.
        """
        size = self.shape[1] if direction == "i2t" else self.shape[0]
        if direction not in self.listed:
            none = np.zeros(0, np.int64)
            return Placements(none, np.zeros(1, np.int64), none, none, np.zeros(0), size)
        listed = self.listed[direction]
        if len(listed.query) and not positives.count[listed.query].any():
            images, captions = self.shape
            pool = f"{counted(images, 'image')} and {counted(captions, 'caption')}"
            lists = counted(len(np.unique(listed.query)), "list")
            raise InputError(
                f"{self.name}: of {pool} it has {lists} in the direction {direction}, and no query of theirs has a "
                "right candidate: name the manifest or --qrels that has its ids; if these are a fold's or a "
                "language's, list its judged queries too"
            )
        right = _scores_of(listed, positives, size)
        is_listed = ~np.isnan(right)
        by_query = np.lexsort((listed.score, listed.query))
        scores = listed.score[by_query]
        bounds = np.searchsorted(listed.query[by_query], np.arange(len(positives) + 1))
        ordered = (scores[first:last] for first, last in pairwise(bounds.tolist()))
        above, tied = around(ordered, right, positives.start)
        above[~is_listed] = NEVER
        tied[~is_listed] = 1
        return Placements.of(positives, above, tied, max(size, 1))


def _scores_of(listed: Listed, positives: Positives, size: int) -> Floats:
    """The listed score of each right pair, float64 [P], NaN for one that is not listed; of `size`
    candidates.
    """
    scores = np.full(len(positives.candidate), np.nan)
    if not len(listed.query):
        return scores
    key = listed.query * size + listed.candidate
    order = np.argsort(key, kind="stable")
    key = key[order]
    wanted = positives.query * size + positives.candidate
    at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    is_listed = key[at] == wanted
    scores[is_listed] = listed.score[order][at[is_listed]]
    return scores


def order_of(query: Ids, score: Floats, rank: Floats | None = None) -> Order:
    """How scores, float64 [n], go in each query's list: in the order of its rows, or of its ranks
    where these are given.
    """
    rows: np.ndarray = np.arange(len(query))
    if rank is not None:
        rows = rank
    order = np.lexsort((rows, query))
    query = query[order]
    score = score[order]
    rows = rows[order]
    same_query = query[1:] == query[:-1]
    following = same_query & (rows[1:] > rows[:-1])
    step = np.sign(np.diff(score))[following]
    falls = int((step < 0).sum())
    rises = int((step > 0).sum())
    stepping = query[1:][following][step != 0]
    _, steps_of_query = np.unique(stepping, return_counts=True)
    surprise = sum(math.lgamma(steps + 2) for steps in steps_of_query.tolist())
    if surprise < CHANCE:
        return UNKNOWN_ORDER
    most: float = 0
    if rank is not None:
        most = ROUGHLY * (falls + rises)
    are_places = number_places(query, score)
    return Order(rises <= most, falls <= most, rank is not None, are_places)


def number_places(query: Ids, score: Floats) -> bool:
    """Whether the scores of each query, in whatever order, are the numbers from 0 or 1 on."""
    order = np.lexsort((score, query))
    query = query[order]
    score = score[order]
    is_first = np.concatenate([[True], query[1:] != query[:-1]])
    first = np.flatnonzero(is_first)
    sizes = np.diff([*first, len(query)])
    place = np.arange(len(query)) - np.repeat(first, sizes)
    return np.array_equal(score, place) or np.array_equal(score, place + 1)


def _before(query: Ids, score: Floats, is_right: Marks) -> Before:
    """How right candidates stand in lists that have right and wrong ones, by the rank sum of each
    list (Mann and Whitney); equal scores count half.
    """
    order = np.lexsort((score, query))
    query = query[order]
    score = score[order]
    is_right = is_right[order]
    begins_list = np.ones(len(query), bool)
    begins_list[1:] = query[1:] != query[:-1]
    begins_tie = begins_list.copy()
    begins_tie[1:] |= score[1:] != score[:-1]
    tie = np.cumsum(begins_tie) - 1
    sum_of_places = np.bincount(tie, np.arange(len(query)))
    mean_place = sum_of_places / np.bincount(tie)
    rows = np.cumsum(begins_list) - 1
    rank = mean_place[tie] - np.flatnonzero(begins_list)[rows]
    sizes = np.bincount(rows)
    right = np.bincount(rows, is_right)
    wrong = sizes - right
    rank_sum = np.bincount(rows, rank * is_right)
    has_both = (right > 0) & (wrong > 0)
    if not has_both.any():
        return Before(0.5, 0.0)
    right = right[has_both]
    wrong = wrong[has_both]
    rank_sum = rank_sum[has_both]
    share = (rank_sum - right * (right - 1) / 2) / (right * wrong)
    variance = (right + wrong + 1) / (12 * right * wrong)
    deviation = (share - 0.5).sum() / math.sqrt(variance.sum())
    return Before(float(share.mean()), float(deviation))


def _places(chosen: Ids, size: int) -> Ids:
    """The place of each of `size` items among the chosen ones, int64 [size]; -1 for the others."""
    row_of_item = np.full(size, -1, np.int64)
    row_of_item[chosen] = np.arange(len(chosen))
    return row_of_item
