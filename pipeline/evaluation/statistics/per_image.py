"""Hits summed by image: recalls for any weights of the images, and each image's deviation from the recalls.

The unit is the image with all its captions, because captions of one image are not independent of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.evaluation.retrieval.metrics import RECALLS, Metrics
from pipeline.evaluation.retrieval.ranks import Floats, QueryRanks, Ranks, Ties

# The order of the statistics in every array here: six recalls, i2t first, then their sum.
STATISTICS = (*(f"{direction}_r{k}" for direction in ("i2t", "t2i") for k in RECALLS), "rsum")


@dataclass(frozen=True)
class FoldHits:
    """The hits and queries of each image of one fold; images without captions are left out."""

    hits: Floats  # float64 [I, 6], the image's expected number of hits for each recall of `STATISTICS`
    queries: Ids  # int64 [I, 2], the image's number of queries, i2t and t2i

    @classmethod
    def of(cls, ranks: Ranks, ties: Ties) -> FoldHits:
        """Sum the chances of a hit over each image's queries."""
        images = ranks.shape[0]
        both = ((ranks.i2t, ranks.i2t.query), (ranks.t2i, ranks.relevance.drawn_with[ranks.t2i.query]))
        hits = [_by_image(queries, owner, k, ties, images) for queries, owner in both for k in RECALLS]
        queries = np.stack([np.bincount(owner, minlength=images) for _, owner in both], 1)
        asking = drawn(ranks)
        return cls(np.stack(hits, 1)[asking], queries[asking])

    def minus(self, other: FoldHits) -> FoldHits:
        """Subtract another system's hits on the same queries."""
        return FoldHits(self.hits - other.hits, self.queries)

    def recalls(self, weights: Floats) -> Floats:
        """Compute recalls with weighted images."""
        queries = np.repeat(weights @ self.queries, len(RECALLS), axis=1)
        recalls: Floats = 100 * (weights @ self.hits) / np.maximum(queries, 1)
        return recalls

    def contributions(self) -> Floats:
        """Compute how far each image lies above or below the recalls.

        If all images have equally many queries, this is the image's own recall minus the overall recall. Otherwise it
        is the linear approximation of the ratio hits / queries.

        Source: Cochran, Sampling Techniques, 1977, section 6.4.
        """
        queries = np.repeat(self.queries, len(RECALLS), axis=1)
        recalls = self.hits.sum(0) / queries.sum(0)
        each: Floats = 100 * (self.hits - recalls * queries) / queries.mean(0)
        return each


def drawn(ranks: Ranks) -> npt.NDArray[np.bool_]:
    """Find the images that test sets draw: those with queries. Other images are candidates only."""
    asking = np.zeros(ranks.shape[0], bool)
    asking[ranks.i2t.query] = True
    asking[ranks.relevance.drawn_with[ranks.t2i.query]] = True
    return asking


def _by_image(queries: QueryRanks, owner: Ids, k: int, ties: Ties, images: int) -> Floats:
    return np.bincount(owner, weights=queries.hits(k, ties), minlength=images).astype(np.float64)


def gather(metrics: Metrics) -> list[FoldHits]:
    """Sum the hits of each fold by image."""
    return [FoldHits.of(ranks, metrics.ties) for ranks in metrics.ranks]


def contributions(folds: Sequence[FoldHits]) -> Floats:
    """Compute how far each image of all folds lies above or below the statistics.

    The variance of a statistic over test sets of other images is the variance of its column, divided by N.
    """
    images = sum(len(fold.hits) for fold in folds)
    # A statistic is the mean over folds, so an image of a smaller fold has more weight.
    six = np.concatenate([fold.contributions() * (images / (len(folds) * len(fold.hits))) for fold in folds])
    return np.concatenate([six, six.sum(1, keepdims=True)], 1)


def statistics(folds: Sequence[FoldHits]) -> Floats:
    """Compute the statistics with each image counted once."""
    return mean([fold.recalls(np.ones((1, len(fold.hits)))) for fold in folds])[0]


def mean(recalls: Sequence[Floats]) -> Floats:
    """Average recalls over folds and append their sum."""
    six = np.mean(recalls, axis=0)
    return np.concatenate([six, six.sum(1, keepdims=True)], 1)
