"""How certain a number is: bootstrap intervals, paired tests of two systems, and the spread over seeds.

The unit is the image, with all its captions, since captions of one image are not independent of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.errors import InputError
from pipeline.retrieval.metrics import RECALLS, Metrics
from pipeline.retrieval.per_image import STATISTICS, FoldHits, mean, statistics
from pipeline.retrieval.ranks import Floats

# Images of resampled test sets handled at once: 16 bytes each, and some tens of bytes of what follows from them.
DRAWN_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class Interval:
    """A measured value in percent (points of a sum for rsum), with the interval that holds it at
    `confidence`.
    """

    value: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class Comparison:
    """Second system minus first: the difference, its bootstrap interval, and the two-sided p of a paired
    test.
    """

    difference: Interval
    p: float


@dataclass(frozen=True)
class Spread:
    """Over n seeds: mean, sample standard deviation (divided by n - 1), smallest and largest value."""

    seeds: int
    mean: float
    deviation: float
    smallest: float
    largest: float


def bootstrap(metrics: Metrics, samples: int = 1000, confidence: float = 0.95, seed: int = 0) -> dict[str, Interval]:
    """Percentile bootstrap (Efron and Tibshirani, 1993, chapter 13) of every recall and of RSUM.

    Images are drawn with replacement, within each fold, together with their captions, as queries; the pool of
    candidates stays as it was. Returns one `Interval` for each name in `STATISTICS`.
    """
    _check(samples, confidence)
    folds = [FoldHits.of(ranks, metrics.ties) for ranks in metrics.ranks]
    drawn = _resample(folds, samples, np.random.default_rng(seed))
    return _intervals(statistics(folds), drawn, confidence)


def interval(metrics: Metrics, samples: int = 1000, seed: int = 0) -> dict[str, Any]:
    """The 95 % intervals of `bootstrap` as plain JSON values, nested as `Metrics.as_dict` is: [low, high] each."""
    each = {name: [found.low, found.high] for name, found in bootstrap(metrics, samples, seed=seed).items()}
    ways = {way: {f"r{k}": each[f"{way}_r{k}"] for k in RECALLS} for way in ("i2t", "t2i")}
    return {**ways, "rsum": each["rsum"]}


def compare(
    first: Metrics | Sequence[Metrics],
    second: Metrics | Sequence[Metrics],
    samples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Comparison]:
    """Whether `second` differs from `first` on the same queries; one `Comparison` for each name in
    `STATISTICS`.

    Each may be several runs that differ in their training seed: their hits are averaged query by query, so
    that the difference is that of their means. The interval resamples the same images for both systems. p is
    that of the paired randomisation test (Smucker, Allan and Carterette, CIKM 2007): under the hypothesis that
    the systems are alike, each image's results could as well have been swapped between them; p = (1 + number
    of random swaps with a difference at least as large in size) / (1 + samples). Both speak of other images,
    not of other seeds: `over_seeds` gives that spread.

    Raises `InputError` if they were not measured by one protocol on the same images and captions.
    """
    _check(samples, confidence)
    before, after = ([each] if isinstance(each, Metrics) else list(each) for each in (first, second))
    for run in (*before[1:], *after):
        _check_same_queries(before[0], run)
    generator = np.random.default_rng(seed)
    folds = [new.minus(old) for old, new in zip(_mean_hits(before), _mean_hits(after), strict=True)]
    measured = statistics(folds)
    intervals = _intervals(measured, _resample(folds, samples, generator), confidence)
    swapped = np.abs(_swap(folds, samples, generator))
    # The measured difference is itself one of the swaps; a little slack keeps its equals equal after
    # rounding.
    p = (1 + (swapped >= np.abs(measured) - 1e-9).sum(0)) / (1 + samples)
    return {name: Comparison(intervals[name], float(p[each])) for each, name in enumerate(STATISTICS)}


def _mean_hits(runs: Sequence[Metrics]) -> list[FoldHits]:
    """For each fold, the mean over runs on the same queries."""
    by_run = [[FoldHits.of(ranks, run.ties) for ranks in run.ranks] for run in runs]
    return [
        FoldHits(np.mean([fold.hits for fold in folds], axis=0), folds[0].queries)
        for folds in zip(*by_run, strict=True)
    ]


def over_seeds(runs: Sequence[Metrics]) -> dict[str, Spread]:
    """Mean and spread of runs that differ in their seed; one `Spread` for each name in `STATISTICS`.

    Raises `InputError` for fewer than two runs, or if they were not measured by one protocol on pools of one
    size.
    """
    if len(runs) < 2:
        raise InputError(f"a spread over seeds needs at least two runs, received {len(runs)}")
    kinds = {(run.protocol, run.ties, run.images, run.captions) for run in runs}
    if len(kinds) > 1:
        raise InputError(f"runs differ in protocol, ties, images or captions: {sorted(kinds)}")
    values = np.array([_numbers(run) for run in runs])
    columns = (values.mean(0), values.std(0, ddof=1), values.min(0), values.max(0))
    return {
        name: Spread(len(runs), *(float(column[each]) for column in columns)) for each, name in enumerate(STATISTICS)
    }


def _resample(folds: Sequence[FoldHits], samples: int, generator: np.random.Generator) -> Floats:
    """The statistics [samples, 7] of test sets drawn with replacement."""
    drawn = []
    for count in _batches(folds, samples):
        recalls = []
        for fold in folds:
            images = len(fold.hits)
            weights = generator.multinomial(images, np.full(images, 1 / images), size=count)
            recalls.append(fold.recalls(weights.astype(np.float64)))
        drawn.append(mean(recalls))
    return np.concatenate(drawn)


def _swap(folds: Sequence[FoldHits], samples: int, generator: np.random.Generator) -> Floats:
    """The differences [samples, 7] after swapping the two systems' results of about half of the images."""
    swapped = []
    for count in _batches(folds, samples):
        recalls = []
        for fold in folds:
            signs = generator.integers(0, 2, size=(count, len(fold.hits))) * 2.0 - 1
            queries = np.repeat(fold.queries.sum(0), len(RECALLS))
            recalls.append(100 * (signs @ fold.hits) / queries)
        swapped.append(mean(recalls))
    return np.concatenate(swapped)


def _batches(folds: Sequence[FoldHits], samples: int) -> list[int]:
    """How many resampled test sets to handle at once, so that memory stays bounded for any number of images."""
    most = max(1, DRAWN_AT_ONCE // max(len(fold.hits) for fold in folds))
    return [min(most, samples - start) for start in range(0, samples, most)]


def _intervals(measured: Floats, drawn: Floats, confidence: float) -> dict[str, Interval]:
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return {
        name: Interval(float(measured[each]), float(low[each]), float(high[each]), confidence)
        for each, name in enumerate(STATISTICS)
    }


def _numbers(metrics: Metrics) -> list[float]:
    return [*metrics.i2t.recalls.values(), *metrics.t2i.recalls.values(), metrics.rsum]


def _check(samples: int, confidence: float) -> None:
    if samples < 1 or not 0 < confidence < 1:
        raise InputError(f"expected samples from 1 up, confidence between 0 and 1, received {samples} and {confidence}")


def _check_same_queries(first: Metrics, second: Metrics) -> None:
    if (first.protocol, first.ties) != (second.protocol, second.ties):
        raise InputError(
            f"the systems were measured by protocols {first.protocol} and {second.protocol}, "
            f"ties {first.ties} and {second.ties}: measure both alike"
        )
    same = len(first.ranks) == len(second.ranks) and all(
        before.shape == after.shape and np.array_equal(before.caption_image, after.caption_image)
        for before, after in zip(first.ranks, second.ranks, strict=True)
    )
    if not same:
        raise InputError("the systems were not measured on the same images and captions in one order: align them")
