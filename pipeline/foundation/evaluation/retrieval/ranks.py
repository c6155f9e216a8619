"""What is known of each query after ranking, and the exact chances that follow when similarities
are tied.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from pipeline.foundation.evaluation.retrieval.blocks import Floats, Ids
from pipeline.foundation.evaluation.retrieval.relevance import Relevance
from pipeline.foundation.parts.errors import unknown

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


def check_ties(ties: str) -> str:
    """Check a rule for ties."""
    if ties not in get_args(Ties):
        raise unknown("rule for ties", ties, get_args(Ties))
    return ties
