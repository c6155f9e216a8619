"""Hits gathered by image, from which the recalls of any weighting of the images follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.retrieval.blocks import Ids
from pipeline.retrieval.metrics import RECALLS
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
        both = ((ranks.i2t, ranks.i2t.query), (ranks.t2i, ranks.caption_image[ranks.t2i.query]))
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


def _by_image(queries: QueryRanks, owner: Ids, k: int, ties: Ties, images: int) -> Floats:
    return np.bincount(owner, weights=queries.hits(k, ties), minlength=images).astype(np.float64)


def statistics(folds: Sequence[FoldHits]) -> Floats:
    """The statistics [7] where every image counts once."""
    return mean([fold.recalls(np.ones((1, len(fold.hits)))) for fold in folds])[0]


def mean(recalls: Sequence[Floats]) -> Floats:
    """The mean over folds of recalls [S, 6], with their sum appended: [S, 7]."""
    six = np.mean(recalls, axis=0)
    return np.concatenate([six, six.sum(1, keepdims=True)], 1)
