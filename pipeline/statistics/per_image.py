"""Hits gathered by image, from which the recalls of any weighting of the images follow, and what each image adds.

The unit is the image, with all its captions, since captions of one image are not independent of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.retrieval.blocks import Ids
from pipeline.retrieval.metrics import RECALLS, Metrics
from pipeline.retrieval.ranks import Floats, QueryRanks, Ranks, Ties

# The order of the statistics in every array here: six recalls, i2t first, then their sum.
STATISTICS = (*(f"{direction}_r{k}" for direction in ("i2t", "t2i") for k in RECALLS), "rsum")


@dataclass(frozen=True)
class FoldHits:
    """What each of a fold's images with captions adds to the hits: float64 [I, 6]; and to the number of
    queries: [I, 2].
    """

    hits: Floats
    queries: Ids

    @classmethod
    def of(cls, ranks: Ranks, ties: Ties) -> FoldHits:
        """Sums the chances of a hit over each image's queries."""
        images = ranks.shape[0]
        both = ((ranks.i2t, ranks.i2t.query), (ranks.t2i, ranks.relevance.drawn_with[ranks.t2i.query]))
        hits = [_by_image(queries, owner, k, ties, images) for queries, owner in both for k in RECALLS]
        queries = np.stack([np.bincount(owner, minlength=images) for _, owner in both], 1)
        # Images without captions are candidates alone: no test set would be drawn from them.
        asking = queries.any(1)
        return cls(np.stack(hits, 1)[asking], queries[asking])

    def minus(self, other: FoldHits) -> FoldHits:
        """The difference of two systems on the same queries."""
        return FoldHits(self.hits - other.hits, self.queries)

    def recalls(self, weights: Floats) -> Floats:
        """Recalls in percent [S, 6] where image i counts weights[s, i] times."""
        queries = np.repeat(weights @ self.queries, len(RECALLS), axis=1)
        recalls: Floats = 100 * (weights @ self.hits) / np.maximum(queries, 1)
        return recalls

    def contributions(self) -> Floats:
        """By how much each image lies above or below the recalls: percent [I, 6], each column of mean zero.

        With as many queries to every image it is the image's own recall less the recall of all. Otherwise it is the
        linear part of the ratio hits / queries (Cochran, Sampling Techniques, 1977, section 6.4).
        """
        queries = np.repeat(self.queries, len(RECALLS), axis=1)
        recalls = self.hits.sum(0) / queries.sum(0)
        each: Floats = 100 * (self.hits - recalls * queries) / queries.mean(0)
        return each


def _by_image(queries: QueryRanks, owner: Ids, k: int, ties: Ties, images: int) -> Floats:
    return np.bincount(owner, weights=queries.hits(k, ties), minlength=images).astype(np.float64)


def gather(metrics: Metrics) -> list[FoldHits]:
    """The hits of each fold, one entry for a pool without folds."""
    return [FoldHits.of(ranks, metrics.ties) for ranks in metrics.ranks]


def contributions(folds: Sequence[FoldHits]) -> Floats:
    """By how much each image of all folds lies above or below the statistics: [N, 7], each column of mean zero.

    The variance of a statistic over test sets of other images is that of its column, divided by N.
    """
    images = sum(len(fold.hits) for fold in folds)
    # A statistic is the mean over folds: an image of a smaller fold has more to say in it.
    six = np.concatenate([fold.contributions() * (images / (len(folds) * len(fold.hits))) for fold in folds])
    return np.concatenate([six, six.sum(1, keepdims=True)], 1)


def statistics(folds: Sequence[FoldHits]) -> Floats:
    """The statistics [7] where every image counts once."""
    return mean([fold.recalls(np.ones((1, len(fold.hits)))) for fold in folds])[0]


def mean(recalls: Sequence[Floats]) -> Floats:
    """The mean over folds of recalls [S, 6], with their sum appended: [S, 7]."""
    six = np.mean(recalls, axis=0)
    return np.concatenate([six, six.sum(1, keepdims=True)], 1)
