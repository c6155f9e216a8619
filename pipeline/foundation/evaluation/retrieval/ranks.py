"""What is known of each query after ranking, and the exact chances that follow when similarities
are tied; ranks that were counted before, without the scores.
"""

from dataclasses import dataclass, replace
from typing import Literal, NoReturn, TypeAlias, get_args

import numpy as np

from pipeline.foundation.evaluation.retrieval.blocks import Direction, Floats, Ids
from pipeline.foundation.evaluation.retrieval.owners import NO_IMAGE, renumbered
from pipeline.foundation.evaluation.retrieval.protocols import Protocol
from pipeline.foundation.evaluation.retrieval.relevance import Positives, Relevance
from pipeline.foundation.parts.errors import InputError, unknown

Ties: TypeAlias = Literal["expected", "pessimistic", "optimistic"]


@dataclass(frozen=True, eq=False)
class QueryRanks:
    """What was counted for the Q queries of one direction; every array is int64 [Q].

    The best right item's rank, from 1, is between greater + 1 and greater + equal + 1. How ties are
    broken decides: "expected" is the exact mean over all orders of the tied items, "pessimistic"
    has every tied wrong item first, "optimistic" last.
    """

    query: Ids  # row of the image (i2t) or column of the caption (t2i)
    greater: Ids  # wrong items more similar than the query's best right item
    equal: Ids  # wrong items exactly as similar
    right: Ids  # right items that share that best similarity

    def __len__(self) -> int:
        return len(self.query)

    @property
    def tied(self) -> int:
        """How many queries have a wrong item exactly as similar as their best right one."""
        return int(np.count_nonzero(self.equal))

    def hits(self, k: int, ties: Ties = "expected") -> Floats:
        """The chance, float64 [Q], that a query's best right item is among the first k, by how ties
        count.

        Of the n = equal + right items that share the best similarity, the first j = k - greater are
        in the top K. None of them is right with the hypergeometric chance C(n - right, j) / C(n, j)
        = C(n - j, right) / C(n, right).
        """
        if check_ties(ties) != "expected":
            return (self.ranks(ties) <= k).astype(np.float64)
        tied = self.equal + self.right
        inside = np.clip(k - self.greater, 0, tied)
        miss = np.ones(len(self))
        for step in range(int(self.right.max(initial=0))):
            drawn = step < self.right
            wrong = np.maximum(tied - inside - step, 0)
            miss[drawn] *= wrong[drawn] / (tied - step)[drawn]
        # With one right item the chance is j / n, computed without the rounding of 1 - (1 - j / n).
        return np.where(self.right == 1, inside / tied, 1.0 - miss)

    def ranks(self, ties: Ties = "expected") -> Floats:
        """The rank of each query's best right item, float64 [Q] from 1, by how ties count.

        Expected: greater + 1 + equal / (right + 1), the mean over all orders of the tied items:
            each wrong one comes before all `right` right ones with the chance 1 / (right + 1).
        """
        check_ties(ties)
        rank: Floats = (self.greater + 1).astype(np.float64)
        if ties == "expected":
            return rank + self.equal / (self.right + 1)
        if ties == "pessimistic":
            return rank + self.equal
        return rank


@dataclass(frozen=True, eq=False)
class Ranks:
    """Both directions over one pool, and what is right in it."""

    i2t: QueryRanks
    t2i: QueryRanks
    relevance: Relevance

    @property
    def shape(self) -> tuple[int, int]:
        """Images and captions of the pool."""
        return self.relevance.shape


@dataclass(frozen=True, eq=False)
class RankedPool:
    """What was counted for the queries of one pool, such as a fold.

    The rows of `of_images` and `of_captions` are `greater`, `equal` and `right` of `QueryRanks`;
    `right` is 0 for what is no query.
    """

    images: Ids  # int64 [I'], rows of the whole
    captions: Ids  # int64 [C'], columns of the whole
    of_images: Ids  # int64 [3, I']
    of_captions: Ids  # int64 [3, C']


@dataclass(frozen=True, eq=False)
class KnownRanks:
    """The rank of each query's best right candidate, by one protocol."""

    shape: tuple[int, int]  # images and captions
    relevance: Relevance  # what is right
    pools: tuple[RankedPool, ...]  # one for each fold
    rules: Protocol  # the protocol by which they were counted
    name: str  # the file, for messages
    dataset: str = ""  # the data set's name, "" where it is unknown
    judgements: str = ""  # the file that says what is right, "" for none
    # whether captions of equal text are one query, for which all their images are right
    same_text: bool = False

    def ranks(self, relevance: Relevance) -> Ranks:
        """The ranks of all images and captions as one pool.

        Args:
            relevance: What is right in it, which must be what was right when they were counted.

        Returns:
            Both directions' ranks.

        Raises:
            InputError: If they were counted in other pools, or for other right answers.
        """
        images, captions = self.shape
        whole = None
        for pool in self.pools:
            if (len(pool.images), len(pool.captions)) == self.shape:
                whole = pool
        if whole is None:
            raise self._of_other_pool()
        if not relevance.ranks_like(self.relevance):
            raise InputError(
                f"{self.name}: holds ranks by {self.right}, which other right answers do not have; leave "
                "out --qrels and --same-text, or give the scores"
            )
        of_images = _query_ranks(whole.of_images, whole.images, images)
        of_captions = _query_ranks(whole.of_captions, whole.captions, captions)
        return Ranks(of_images, of_captions, relevance)

    def among(self, images: Ids, captions: Ids, relevance: Relevance) -> Ranks:
        """The ranks among some images and captions, as far as they follow from those of a pool:
        of a query whose candidates are the pool's.

        Args:
            images: int64 [I'], rows.
            captions: int64 [C'], columns.
            relevance: What is right among them, which must be what was right when they were
                counted.

        Returns:
            Both directions' ranks; a direction that does not follow has no queries.
        """
        row = renumbered(np.arange(self.shape[0]), images, self.shape[0])
        column = renumbered(np.arange(self.shape[1]), captions, self.shape[1])
        of_images = np.zeros((3, len(images)), np.int64)
        of_captions = np.zeros((3, len(captions)), np.int64)
        for pool in self.pools:
            rows = row[pool.images]
            columns = column[pool.captions]
            is_image = rows > NO_IMAGE
            is_caption = columns > NO_IMAGE
            has_images = np.count_nonzero(is_image) == len(images)
            has_captions = np.count_nonzero(is_caption) == len(captions)
            if has_images and has_captions and is_caption.all():
                of_images[:, rows[is_image]] = pool.of_images[:, is_image]
            if has_images and has_captions and is_image.all():
                of_captions[:, columns[is_caption]] = pool.of_captions[:, is_caption]
        i2t = _query_ranks(of_images, np.arange(len(images)), len(images))
        t2i = _query_ranks(of_captions, np.arange(len(captions)), len(captions))
        return Ranks(i2t, t2i, relevance)

    def select(self, images: Ids, captions: Ids) -> "KnownRanks":
        """Keep the pools that lie within some images and captions, see `PerDirection.select`.

        Raises:
            InputError: If there is none, since ranks among fewer candidates are not known.
        """
        row = renumbered(np.arange(self.shape[0]), images, self.shape[0])
        column = renumbered(np.arange(self.shape[1]), captions, self.shape[1])
        kept = []
        for pool in self.pools:
            rows = row[pool.images]
            columns = column[pool.captions]
            if (rows > NO_IMAGE).all() and (columns > NO_IMAGE).all():
                kept.append(replace(pool, images=rows, captions=columns))
        if not kept:
            raise self._of_other_pool()
        shape = (len(images), len(captions))
        relevance = self.relevance.select(images, captions)
        return replace(self, shape=shape, relevance=relevance, pools=tuple(kept))

    @property
    def right(self) -> str:
        """What is right, in words."""
        if self.judgements:
            return f"the judgements in {self.judgements}"
        if self.same_text:
            return "equal captions as one query"
        return "each caption's own image"

    def direction(self, name: Direction, block_bytes: int) -> NoReturn:
        """Refuse what needs scores, see `PerDirection.direction`.

        Raises:
            InputError: Always.
        """
        self.refuse("the score of every pair")

    def place(self, positives: Positives, direction: Direction) -> NoReturn:
        """Refuse what needs more than the best right candidate, see `Placing.place`.

        Raises:
            InputError: Always.
        """
        self.refuse("the rank of every right candidate")

    def refuse(self, needed: str) -> NoReturn:
        """Refuse what is needed beside the ranks.

        Raises:
            InputError: Always.
        """
        raise InputError(
            f"{self.name}: is a file of hits, which holds the rank of each query's best right candidate "
            f"alone, and this needs {needed}; give the scores"
        )

    def _of_other_pool(self) -> InputError:
        return InputError(
            f"{self.name}: holds ranks by protocol {self.rules.name} in its own order of images, and ranks "
            "among other candidates do not follow from them; use this protocol, with images in this "
            "order if it has folds, or give the scores"
        )


def _query_ranks(counts: Ids, places: Ids, size: int) -> QueryRanks:
    """The ranks of one direction's queries in the order of their rows or columns."""
    ordered = np.zeros((3, size), np.int64)
    ordered[:, places] = counts
    greater, equal, right = ordered
    query = np.flatnonzero(right)
    return QueryRanks(query, greater[query], equal[query], right[query])


def check_ties(ties: str) -> str:
    """Check a rule for ties."""
    if ties not in get_args(Ties):
        raise unknown("rule for ties", ties, get_args(Ties))
    return ties
