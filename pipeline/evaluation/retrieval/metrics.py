"""Recall at K, median and mean rank, and RSUM, from ranks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pipeline.evaluation.retrieval import protocols, ranking, workers
from pipeline.evaluation.retrieval.protocols import protocol as find
from pipeline.evaluation.retrieval.ranks import Floats, QueryRanks, Ranks, Ties, check_ties
from pipeline.evaluation.retrieval.relevance import as_relevance
from pipeline.evaluation.retrieval.similarity import as_similarity, select

RECALLS = (1, 5, 10)


@dataclass(frozen=True)
class DirectionMetrics:
    """One direction's numbers."""

    recalls: dict[int, float]  # K -> R@K in percent
    median_rank: float  # from 1
    mean_rank: float  # from 1
    queries: int  # how many there are
    tied: int  # how many of them share their score with a wrong item

    def as_dict(self) -> dict[str, float]:
        """List the numbers as plain JSON values.

        Returns:
            r1, r5, r10, median_rank and mean_rank.
        """
        recalls = {f"r{k}": value for k, value in self.recalls.items()}
        return {**recalls, "median_rank": self.median_rank, "mean_rank": self.mean_rank}


@dataclass(frozen=True)
class Metrics:
    """Everything measured on one similarity matrix.

    Attributes:
        i2t: Of image queries; with folds the mean over them, and of queries and ties the sum.
        t2i: Of caption queries, likewise.
        images: How many were ranked.
        captions: How many were ranked.
        captions_unused: How many the protocol leaves out (a sixth caption of an image, say).
        protocol: Its name.
        ties: How ties count.
        folds: The numbers of each fold; none for a pool in one piece.
        ranks: The counts of every query, one entry for each fold (or one alone).
    """

    i2t: DirectionMetrics
    t2i: DirectionMetrics
    images: int
    captions: int
    captions_unused: int
    protocol: str
    ties: Ties
    folds: "tuple[Metrics, ...]" = ()
    ranks: tuple[Ranks, ...] = field(default=(), repr=False, compare=False)

    @property
    def rsum(self) -> float:
        """The sum of the six recalls, in percent: at most 600."""
        return sum(self.i2t.recalls.values()) + sum(self.t2i.recalls.values())

    def as_dict(self) -> dict[str, Any]:
        """List the numbers as plain JSON values.

        Returns:
            By direction, with rsum, the sizes and how it was measured.
        """
        return {
            "i2t": self.i2t.as_dict(), "t2i": self.t2i.as_dict(), "rsum": self.rsum, "images": self.images,
            "captions": self.captions, "captions_unused": self.captions_unused,
            "queries": {"i2t": self.i2t.queries, "t2i": self.t2i.queries},
            "tied": {"i2t": self.i2t.tied, "t2i": self.t2i.tied}, "ties": self.ties, "protocol": self.protocol,
            **({"folds": [fold.as_dict() for fold in self.folds]} if self.folds else {}),
        }


def evaluate(similarity: object, truth: object, protocol: str | protocols.Protocol = "all", ties: Ties = "expected",
             block_megabytes: float = 32, progress: workers.Progress | None = None) -> Metrics:
    """Measure image-text retrieval in both directions.

    i2t (image query, "caption retrieval") hits if the best-ranked of the image's captions is among the first K, t2i
    (caption query, "image retrieval") if the caption's image is.

    Args:
        similarity: [I images, C captions], as an array, a tensor, a zarr array, the path of a `.npy` file or zarr
            array, `Embeddings`, or a fusion of these.
        truth: What is right: integers [C], the row of each caption's image, or a `Relevance` (see `rank`).
        protocol: A name in `PROTOCOLS`, or a `Protocol`.
        ties: "expected" gives the exact mean over all ways to break ties; "pessimistic" and "optimistic" are its
            bounds.
        block_megabytes: See `rank`.
        progress: See `rank`.

    Returns:
        Recalls in percent, and ranks from 1. The median rank is the median over queries of their expected ranks. No
        number is rounded.

    Raises:
        InputError: For bad shapes and types, for a NaN or infinity, or if the protocol's rules are broken.

    >>> import numpy as np
    >>> evaluate(np.eye(2), [0, 1]).rsum
    600.0
    """
    check_ties(ties)
    rules, source = find(protocol), as_similarity(similarity)
    relevance = as_relevance(truth, source.shape)
    parts = rules.parts(relevance.owner, source.shape[0])
    ranks = []
    for images, captions in parts:
        told = progress and workers.after(progress, int(images[0]))
        pool = select(source, images, captions)
        ranks.append(ranking.rank(pool, relevance.select(images, captions), block_megabytes, told))
    unused = source.shape[1] - sum(len(captions) for _, captions in parts)
    return measure(ranks, rules.name, ties, unused)


def measure(ranks: Sequence[Ranks], protocol: str = "all", ties: Ties = "expected", captions_unused: int = 0
            ) -> Metrics:
    """Compute the metrics of ranks.

    Args:
        ranks: Of one pool, or of several folds, whose mean is taken.
        protocol: The name of the rules by which they were found.
        ties: How ties count.
        captions_unused: How many captions the rules leave out.

    Returns:
        Recalls, ranks and RSUM.
    """
    folds = tuple(Metrics(_direction(each.i2t, ties), _direction(each.t2i, ties), *each.shape, 0, protocol, ties,
                          ranks=(each,)) for each in ranks)
    images, captions = (sum(sizes) for sizes in zip(*(each.shape for each in ranks), strict=True))
    return Metrics(_mean([fold.i2t for fold in folds]), _mean([fold.t2i for fold in folds]), images, captions,
                   captions_unused, protocol, ties, folds if len(folds) > 1 else (), tuple(ranks))


def _direction(queries: QueryRanks, ties: Ties) -> DirectionMetrics:
    ranks = queries.ranks(ties)
    recalls = {k: _exact_mean(queries.hits(k, ties), 100) for k in RECALLS}
    return DirectionMetrics(recalls, float(np.median(ranks)), _exact_mean(ranks), len(queries), queries.tied)


def _exact_mean(values: Floats, scale: float = 1) -> float:
    return scale * math.fsum(values) / len(values)


def _mean(folds: Sequence[DirectionMetrics]) -> DirectionMetrics:
    recalls = {k: float(np.mean([fold.recalls[k] for fold in folds])) for k in RECALLS}
    median, mean = (float(np.mean([getattr(fold, name) for fold in folds])) for name in ("median_rank", "mean_rank"))
    return DirectionMetrics(recalls, median, mean, sum(fold.queries for fold in folds),
                            sum(fold.tied for fold in folds))
