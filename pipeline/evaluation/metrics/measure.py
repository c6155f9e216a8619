"""The numbers of metrics over one pool or several folds, each with its interval."""

import math
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pipeline.evaluation.metrics import certainty
from pipeline.evaluation.metrics.base import Fold, Metric
from pipeline.evaluation.retrieval.metrics import Metrics
from pipeline.evaluation.retrieval.placements import place
from pipeline.evaluation.retrieval.protocols import Protocol
from pipeline.evaluation.retrieval.protocols import protocol as find
from pipeline.evaluation.retrieval.ranks import Floats, Ranks, Ties
from pipeline.evaluation.retrieval.relevance import as_relevance
from pipeline.evaluation.retrieval.similarity import Direction, PerDirection, Similarity, select


class Sampling(typing.Protocol):
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
            protocol: str | Protocol, settings: Sampling, progress: Callable[[int], object]) -> dict[str, Any]:
    """Measures several metrics of a pool whose best right candidates are ranked already."""
    relevance = as_relevance(truth, source.shape)
    folds, done = [], 0
    for ranks, part in zip(found.ranks, find(protocol).parts(relevance.owner, source.shape[0]), strict=True):
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
        return Number(value, *certainty.of_median(values, owners, resamples, seed))
    value = float(np.mean([_mean(each) for each in values]))
    shares = certainty.contributions(values, owners)
    return _number(metric, value, shares)


def _summed(metric: Metric, folds: Sequence[Fold]) -> dict[str, Number]:
    value, parts = 0.0, []
    for way in DIRECTIONS:
        ranked = [getattr(fold, way) for fold in folds]
        values = [metric.values(each, fold.ties) for each, fold in zip(ranked, folds, strict=True)]
        value += float(np.mean([_mean(each) for each in values]))
        parts.append((values, [each.drawn_with for each in ranked]))
    assert metric.summed is not None
    return {"both": _number(metric, metric.summed * value, metric.summed * certainty.joint(parts))}


def _number(metric: Metric, value: float, each: Floats) -> Number:
    if not metric.is_share:
        return Number(value, *certainty.of_mean(value, each, least=1))
    low, high = certainty.of_share(value / metric.most, each / metric.most)
    scale = metric.scale * metric.most
    return Number(metric.scale * value, scale * low, scale * high)


def _mean(values: Floats) -> float:
    return math.fsum(values) / len(values)
