"""The numbers of metrics over one pool or several folds, each with its 95 % interval.

Intervals are over test sets of other images, each drawn with its captions.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from pipeline.evaluation.metrics.base import Fold, Metric
from pipeline.evaluation.retrieval import protocols
from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.evaluation.retrieval.metrics import Metrics
from pipeline.evaluation.retrieval.placements import place
from pipeline.evaluation.retrieval.ranks import Floats, Ranks, Ties
from pipeline.evaluation.retrieval.relevance import as_relevance
from pipeline.evaluation.retrieval.similarity import Direction, PerDirection, Similarity, select
from pipeline.evaluation.statistics.intervals import wilson

CONFIDENCE = 0.95
DRAWN_AT_ONCE = 4_000_000  # queries of resampled test sets


class Sampling(Protocol):
    """What of the settings this needs."""

    @property
    def resamples(self) -> int:
        """How many test sets are drawn for the interval of a median."""

    @property
    def seed(self) -> int:
        """Of the drawing."""

    @property
    def block_megabytes(self) -> float:
        """Size of all blocks in memory at once (10^6 bytes)."""


DIRECTIONS: tuple[Direction, ...] = ("i2t", "t2i")


@dataclass(frozen=True)
class Number:
    """A metric's value with its 95 % interval, as it is printed: shares in percent."""

    value: float
    low: float
    high: float


def fold_of(source: Similarity | PerDirection, ranks: Ranks, metrics: Sequence[Metric], ties: Ties,
            block_megabytes: float = 32, progress: Callable[[int], object] = lambda queries: None) -> Fold:
    """One pool, with all right candidates placed where a metric asks for them."""
    best, relevance = (ranks.i2t, ranks.t2i), ranks.relevance
    if not any(metric.asks_for_every for metric in metrics):
        return Fold.of(relevance, best, ties)
    images = relevance.shape[0]
    every = (place(source, relevance, "i2t", block_megabytes, progress),
             place(source, relevance, "t2i", block_megabytes, lambda done: progress(images + done)))
    return Fold.of(relevance, best, ties, every)


def of_pool(metrics: Sequence[Metric], source: Similarity | PerDirection, truth: object, found: Metrics,
            rules: str | protocols.Protocol, settings: Sampling, progress: Callable[[int], object]) -> dict[str, Any]:
    """Measures several metrics of a pool whose best right candidates are ranked already."""
    relevance = as_relevance(truth, source.shape)
    folds, done = [], 0
    parts = protocols.protocol(rules).parts(relevance.owner, source.shape[0])
    for ranks, part in zip(found.ranks, parts, strict=True):
        images, captions = ranks.shape
        folds.append(fold_of(select(source, *part), ranks, metrics, found.ties, settings.block_megabytes,
                             partial(_told, progress, done, images, images + captions)))
        done += images
    return as_dict(measure(metrics, folds, settings.resamples, settings.seed))


def _told(progress: Callable[[int], object], before: int, images: int, queries: int, done: int) -> None:
    progress(before + done * images // queries)


def measure(metrics: Sequence[Metric], folds: Sequence[Fold], resamples: int = 1000, seed: int = 0,
            directions: Sequence[str] = DIRECTIONS) -> dict[str, dict[str, Number]]:
    """Measures several metrics."""
    return {str(metric): _summed(metric, folds) if metric.summed is not None else
            {way: _one(metric, folds, way, resamples, seed) for way in directions} for metric in metrics}


def as_dict(numbers: dict[str, dict[str, Number]]) -> dict[str, Any]:
    """Turn numbers into plain JSON values."""
    return {name: {way: each.value for way, each in ways.items()} | {
        "interval": {way: [each.low, each.high] for way, each in ways.items()}} for name, ways in numbers.items()}


def _one(metric: Metric, folds: Sequence[Fold], way: str, resamples: int, seed: int) -> Number:
    ranked = [getattr(fold, way) for fold in folds]
    values = [metric.values(each, fold.ties) for each, fold in zip(ranked, folds, strict=True)]
    owners = [each.drawn_with for each in ranked]
    if metric.is_median:
        value = float(np.mean([np.median(each) for each in values]))
        return Number(value, *of_median(values, owners, resamples, seed))
    value = float(np.mean([_mean(each) for each in values]))
    shares = contributions(values, owners)
    return _number(metric, value, shares)


def _summed(metric: Metric, folds: Sequence[Fold]) -> dict[str, Number]:
    value, parts = 0.0, []
    for way in DIRECTIONS:
        ranked = [getattr(fold, way) for fold in folds]
        values = [metric.values(each, fold.ties) for each, fold in zip(ranked, folds, strict=True)]
        value += float(np.mean([_mean(each) for each in values]))
        parts.append((values, [each.drawn_with for each in ranked]))
    assert metric.summed is not None
    return {"both": _number(metric, metric.summed * value, metric.summed * joint(parts))}


def _number(metric: Metric, value: float, each: Floats) -> Number:
    if not metric.is_share:
        return Number(value, *of_mean(value, each, least=1))
    low, high = of_share(value / metric.most, each / metric.most)
    scale = metric.scale * metric.most
    return Number(metric.scale * value, scale * low, scale * high)


def _mean(values: Floats) -> float:
    return math.fsum(values) / len(values)


def contributions(values: Sequence[Floats], owners: Sequence[Ids]) -> Floats:
    """By how much each image of all folds lies above or below a mean over queries."""
    return joint([(values, owners)])


def joint(parts: Sequence[tuple[Sequence[Floats], Sequence[Ids]]]) -> Floats:
    """Compute the same for the sum of several means over queries of the same images."""
    folds = []
    for fold in range(len(parts[0][0])):
        images = 1 + max(int(owners[fold].max()) for _, owners in parts)
        asked, total = np.zeros(images, bool), np.zeros(images)
        counts, sums = [], []
        for values, owners in parts:
            counts.append(np.bincount(owners[fold], minlength=images))
            sums.append(np.bincount(owners[fold], values[fold], minlength=images))
            asked |= counts[-1] > 0
        for count, found in zip(counts, sums, strict=True):
            total += (found - found.sum() / count.sum() * count) / count[asked].mean()
        folds.append(total[asked])
    images = sum(map(len, folds))
    # A number is the mean over folds: an image of a smaller fold has more to say in it.
    return np.concatenate([each * (images / (len(folds) * len(each))) for each in folds])


def of_share(value: float, each: Floats) -> tuple[float, float]:
    """Compute Wilson's interval of a mean of values from 0 to 1."""
    low, high = wilson(np.array([value]), np.array([(each**2).sum()]), len(each), CONFIDENCE)
    return float(low[0]), float(high[0])


def of_mean(value: float, each: Floats, least: float) -> tuple[float, float]:
    """Compute Student's interval of a mean of any values."""
    from scipy.special import stdtrit  # a fifth of a second to import

    freedom = max(len(each) - 1, 1)
    half = float(stdtrit(freedom, (1 + CONFIDENCE) / 2) * np.sqrt((each**2).sum() / (freedom * len(each))))
    return max(least, value - half), value + half


def of_median(values: Sequence[Floats], owners: Sequence[Ids], resamples: int, seed: int) -> tuple[float, float]:
    """Compute the percentile bootstrap's interval of a median over queries, with images drawn within each fold.

    Source:
        Efron and Tibshirani, 1993, chapter 13.
    """
    generator = np.random.default_rng(seed)
    drawn = np.mean([_medians(*fold, resamples, generator) for fold in zip(values, owners, strict=True)], axis=0)
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def _medians(values: Floats, owner: Ids, resamples: int, generator: np.random.Generator) -> Floats:
    """The medians of so many resampled test sets."""
    images, image = np.unique(owner, return_inverse=True)
    order = np.argsort(values, kind="stable")
    values, image = values[order], image[order]
    found = []
    at_once = max(1, DRAWN_AT_ONCE // len(values))
    for start in range(0, resamples, at_once):
        count = min(at_once, resamples - start)
        weights = generator.multinomial(len(images), np.full(len(images), 1 / len(images)), size=count)
        total = np.cumsum(weights[:, image], axis=1)
        # The two middle ones of the queries that were drawn, in order.
        for middle in zip(total, total[:, -1], strict=True):
            cumulated, size = middle
            places = np.searchsorted(cumulated, [(size + 1) // 2, size // 2 + 1])
            found.append(values[places].mean())
    return np.array(found)
