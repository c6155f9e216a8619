"""What every evaluation measures: R@1, R@5, R@10, median and mean rank of both directions, and
RSUM.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.metrics.base import (
    RECALLS,
    RSUM,
    Fold,
    Metric,
    Sampling,
    Statistic,
    as_dict,
    fold_of,
    nested,
    over_ties,
    with_intervals,
)
from pipeline.foundation.evaluation.metrics.kinds import Hit, MeanRank, MedianRank, RSum
from pipeline.foundation.evaluation.retrieval import (
    Direction,
    Floats,
    Ids,
    Progress,
    Protocol,
    Ranks,
    Relevance,
    Scores,
    Ties,
    protocol as find,
)
from pipeline.foundation.evaluation.retrieval.ranking import rank_all
from pipeline.foundation.evaluation.retrieval.ranks import check_ties
from pipeline.foundation.evaluation.retrieval.relevance import as_relevance, without_queries
from pipeline.foundation.evaluation.retrieval.workers import after
from pipeline.foundation.parts.errors import InputError

WAYS: tuple[Direction, ...] = ("i2t", "t2i")
OF_DIRECTIONS: tuple[Metric, ...] = (*map(Hit, RECALLS), MedianRank(), MeanRank())


class QueryValues(NamedTuple):
    """What one fold's queries of a direction have by a metric."""

    values: Floats  # [Q], shares from 0 to 1
    drawn_with: Ids  # int64 [Q], the image with which tests and intervals draw each query


@dataclass(frozen=True)
class Metrics:
    """Everything measured on one similarity matrix."""

    # Recalls in percent and ranks from 1 of each direction, and RSUM; with folds the means over
    # them. NaN for what lists of the best candidates do not tell: ranks of what is not listed, and
    # a direction that has no lists.
    numbers: Mapping[Statistic, float]
    images: int  # How many were ranked
    captions: int  # How many were ranked
    captions_unused: int  # How many the protocol leaves out (a sixth caption of an image, say)
    protocol: str
    ties: Ties
    # The counts of every query, one entry for each fold (or one alone).
    ranks: tuple[Ranks, ...] = field(repr=False, compare=False)
    # By further metrics: for each fold, the values of its queries.
    further: Mapping[Statistic, tuple[QueryValues, ...]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def __getitem__(self, statistic: tuple[str, str]) -> float:
        """A number by its direction and metric: `metrics["i2t", "R@1"]`."""
        return self.numbers[Statistic(*statistic)]

    @property
    def rsum(self) -> float:
        """The sum of the six recalls, in percent: at most 600."""
        return self.numbers[RSUM]

    @property
    def directions(self) -> list[Direction]:
        """The directions that have queries."""
        return [way for way in WAYS if self.queries[way]]

    @property
    def queries(self) -> dict[str, int]:
        """How many queries each direction has."""
        return {
            "i2t": sum(len(fold.i2t) for fold in self.ranks),
            "t2i": sum(len(fold.t2i) for fold in self.ranks),
        }

    @property
    def tied(self) -> dict[str, int]:
        """For how many of them a wrong item ties with the right one."""
        return {
            "i2t": sum(fold.i2t.tied for fold in self.ranks),
            "t2i": sum(fold.t2i.tied for fold in self.ranks),
        }

    @property
    def over_ties(self) -> dict[str, Any]:
        """The ranges of recalls and ranks over ties as JSON values, see `ranges`."""
        folds = [Fold.of(of_fold, self.ties) for of_fold in self.ranks]
        return ranges([*OF_DIRECTIONS, RSum()], folds)

    @property
    def folds(self) -> list["Metrics"]:
        """The numbers of each fold."""
        return [measure([ranks], self.protocol, self.ties) for ranks in self.ranks]

    def as_dict(self) -> dict[str, Any]:
        """The numbers as JSON values, None for NaN: by direction, with RSUM, the sizes and how they
        were measured.
        """
        known: dict[Statistic, float | None] = {}
        for statistic, value in self.numbers.items():
            known[statistic] = None if math.isnan(value) else value
        numbers = nested(known) | {
            "images": self.images,
            "captions": self.captions,
            "captions_unused": self.captions_unused,
            "queries": self.queries,
            "tied": self.tied,
            "ties": self.ties,
            "protocol": self.protocol,
        }
        if len(self.ranks) > 1:
            numbers["folds"] = [fold.as_dict() for fold in self.folds]
        return numbers


def evaluate(
    similarity: object,
    truth: object,
    protocol: str | Protocol = "all",
    ties: Ties = "expected",
    block_megabytes: float = 32,
    progress: Progress | None = None,
) -> Metrics:
    """Measure image-text retrieval in both directions.

    i2t (image query, "caption retrieval") hits if the best-ranked of the image's captions is among
    the first K, t2i (caption query, "image retrieval") if the caption's image is.

    Args:
        similarity: [I images, C captions], as an array, a tensor, a zarr array, the path of a
            `.npy` file or zarr array, `Embeddings`, or a fusion of these.
        truth: What is right: integers [C], the row of each caption's image, or a `Relevance` (see
            `rank`).
        protocol: A name in `PROTOCOLS`, or a `Protocol`.
        ties: "expected" gives the exact mean over all ways to break ties; "pessimistic" and
            "optimistic" are its bounds.
        block_megabytes: See `rank`.
        progress: See `rank`.

    Returns:
        Recalls in percent, and ranks from 1. The median rank is the median over queries of their
        expected ranks. No number is rounded.

    Raises:
        InputError: For bad shapes and types, for a NaN or infinity, or if the protocol's rules are
            broken.

    >>> import numpy as np
    >>> evaluate(np.eye(2), [0, 1])["t2i", "R@1"]
    100.0
    """
    check_ties(ties)
    rules = find(protocol)
    source = retrieval.as_similarity(similarity)
    relevance = as_relevance(truth, source.shape)
    folds = rules.parts(relevance.owner, source.shape[0])
    right_of_folds = [relevance.select(images, captions) for images, captions in folds]
    _require_queries(right_of_folds, rules)
    ranks = []
    used = []
    for (images, captions), right in zip(folds, right_of_folds, strict=True):
        ranked = None
        if progress is not None:
            ranked = after(progress, int(images[0]))
        pool = retrieval.select(source, images, captions)
        ranks.append(rank_all(pool, right, block_megabytes, ranked))
        used.append(captions)
    unused = source.shape[1] - len(np.unique(np.concatenate(used)))
    return measure(ranks, rules.name, ties, unused)


def _require_queries(right_of_folds: Sequence[Relevance], rules: Protocol) -> None:
    """Check that each fold has queries of both directions: a mean over folds is one of all."""
    for number, right in enumerate(right_of_folds, 1):
        fault = without_queries(right)
        if fault and rules.folds > 1:
            raise InputError(
                f"protocol {rules.name}: {fault} in fold {number} of {rules.folds}, so there is no mean "
                "over folds; use fewer folds, or protocol all"
            )
        if fault:
            raise InputError(
                f"protocol {rules.name}: {fault} among the captions that it ranks, so there is nothing "
                "to rank; use protocol all"
            )


def measure(
    ranks: Sequence[Ranks], protocol: str = "all", ties: Ties = "expected", captions_unused: int = 0
) -> Metrics:
    """The metrics of ranks: of one pool, or of several folds, whose mean is taken.

    protocol, ties: the name of the rules, and how ties count. captions_unused: how many captions
        the rules leave out.
    """
    folds = [Fold.of(of_fold, ties) for of_fold in ranks]
    numbers = {}
    for way in WAYS:
        for metric in OF_DIRECTIONS:
            number = math.nan
            if all(fold.tells(metric, way) for fold in folds):
                number = metric.number(folds, way)
            numbers[Statistic(way, str(metric))] = number
    numbers[RSUM] = RSum().of(numbers)
    images = sum(of_fold.shape[0] for of_fold in ranks)
    captions = sum(of_fold.shape[1] for of_fold in ranks)
    return Metrics(numbers, images, captions, captions_unused, protocol, ties, tuple(ranks))


def of_pool(
    metrics: Sequence[Metric],
    source: Scores,
    truth: object,
    found: Metrics,
    rules: str | Protocol,
    settings: Sampling,
    progress: Callable[[int], object],
) -> dict[str, Any]:
    """Compute several metrics of a pool whose best right candidates are ranked already."""
    folds = folds_of(metrics, source, truth, found, rules, settings.block_megabytes, progress)
    numbers = with_intervals(metrics, folds, settings.resamples, settings.seed, found.directions)
    return as_dict(numbers) | ranges(metrics, folds)


def folds_of(
    metrics: Sequence[Metric],
    source: Scores,
    truth: object,
    found: Metrics,
    rules: str | Protocol,
    block_megabytes: float,
    progress: Callable[[int], object] = lambda images: None,
) -> list[Fold]:
    """The folds of a pool whose best right candidates are ranked already, with all right
    candidates placed where a metric asks for them.
    """
    relevance = as_relevance(truth, source.shape)
    parts = find(rules).parts(relevance.owner, source.shape[0])
    folds = []
    done = 0
    for ranks, (images, captions) in zip(found.ranks, parts, strict=True):
        pool = retrieval.select(source, images, captions)
        advance = partial(_of_fold, progress, done, len(images), len(images) + len(captions))
        folds.append(fold_of(pool, ranks, metrics, found.ties, block_megabytes, advance))
        done += len(images)
    return folds


def ranges(metrics: Sequence[Metric], folds: Sequence[Fold]) -> dict[str, Any]:
    """What results say of ranges over ties, {} where none is wide or ties are broken."""
    if any(fold.ties != "expected" for fold in folds):
        return {}
    wide = over_ties(metrics, folds)
    if not wide:
        return {}
    return {"over_ties": nested({name: list(ends) for name, ends in wide.items()})}


def with_further(
    found: Metrics,
    metrics: Sequence[Metric],
    source: object,
    truth: object,
    rules: str | Protocol,
    block_megabytes: float = 32,
) -> Metrics:
    """Add further metrics, and their values of each query, to a pool whose best right candidates
    are ranked already.

    Raises:
        InputError: For a metric that is no mean over one direction's queries of shares up to 1.
    """
    for metric in metrics:
        if metric.summed is not None or not metric.is_share:
            raise InputError(
                f"{metric}: systems are compared by shares of one direction, such as nDCG@10 or MRR, and by "
                "RSUM; leave it out"
            )
    if not metrics:
        return found
    scores = retrieval.as_similarity(source)
    folds = folds_of(metrics, scores, truth, found, rules, block_megabytes)
    numbers = dict(found.numbers)
    further = {}
    for way in found.directions:
        for metric in metrics:
            of_folds = []
            for fold in folds:
                ranked = fold.ranked(way)
                values = metric.values(ranked, fold.ties)
                of_folds.append(QueryValues(values, ranked.drawn_with))
            statistic = Statistic(way, str(metric))
            further[statistic] = tuple(of_folds)
            numbers[statistic] = metric.number(folds, way, [each.values for each in of_folds])
    return replace(found, numbers=numbers, further=further)


def _of_fold(
    progress: Callable[[int], object], before: int, images: int, queries: int, done: int
) -> None:
    progress(before + done * images // queries)
