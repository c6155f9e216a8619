"""Whether two systems differ by more than chance on the same queries."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.evaluation.retrieval.metrics import Metrics
from pipeline.evaluation.statistics import resampling, seeds
from pipeline.evaluation.statistics.intervals import MOST, Interval, check_confidence
from pipeline.evaluation.statistics.per_image import STATISTICS, FoldHits, contributions, gather, statistics
from pipeline.parts.errors import InputError


@dataclass(frozen=True)
class Comparison:
    """The second system minus the first."""

    difference: Interval  # with its interval, in percent (for rsum, the sum of percentages)
    p: float  # two-sided
    over_seeds: bool  # whether interval and p cover other seeds and other images, or other images alone


def compare(
    first: Metrics | Sequence[Metrics],
    second: Metrics | Sequence[Metrics],
    samples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, Comparison]:
    """Test whether `second` differs from `first` on the same queries.

    With two or more seeds of both, interval and p cover other seeds and other images (`seeds.difference`). A single run
    does not show how far its recipe's seeds spread. Then they cover other images alone (`resampling.difference`), and
    several seeds of one side are averaged query by query.

    Args:
        first: One run, or several that differ in their training seed.
        second: Likewise, on the same images and captions.
        samples: How many swaps to draw; used if one side is a single run.
        confidence: Of the intervals, between 0 and 1.
        seed: Of the random draws; used if one side is a single run.

    Returns:
        A comparison for each name in `STATISTICS`.

    Raises:
        InputError: If the runs were not measured by one protocol on the same images and captions.
    """
    check_confidence(confidence)
    before, after = ([each] if isinstance(each, Metrics) else list(each) for each in (first, second))
    for run in (*before[1:], *after):
        _check_same_queries(before[0], run)
    old, new = ([gather(run) for run in group] for group in (before, after))
    over_seeds = len(old) > 1 and len(new) > 1
    minus = [b.minus(a) for a, b in zip(_mean(old), _mean(new), strict=True)]
    low, high, p = (seeds.difference(_runs(old), _runs(new), MOST, confidence) if over_seeds else
                    resampling.difference(minus, samples, MOST, confidence, seed))
    return {name: Comparison(Interval(float(found), float(low[at]), float(high[at]), confidence), float(p[at]),
                             over_seeds)
            for at, (name, found) in enumerate(zip(STATISTICS, statistics(minus), strict=True))}


def _runs(group: Sequence[Sequence[FoldHits]]) -> seeds.Runs:
    return seeds.Runs(np.array([statistics(run) for run in group]), np.array([contributions(run) for run in group]))


def _mean(group: Sequence[Sequence[FoldHits]]) -> list[FoldHits]:
    """Average the hits over runs on the same queries, fold by fold."""
    return [FoldHits(np.mean([fold.hits for fold in folds], axis=0), folds[0].queries)
            for folds in zip(*group, strict=True)]


def _check_same_queries(first: Metrics, second: Metrics) -> None:
    if (first.protocol, first.ties) != (second.protocol, second.ties):
        raise InputError(
            f"the systems were measured by protocols {first.protocol} and {second.protocol}, "
            f"ties {first.ties} and {second.ties}: measure both alike"
        )
    same = len(first.ranks) == len(second.ranks) and all(
        before.shape == after.shape and before.relevance.equals(after.relevance)
        for before, after in zip(first.ranks, second.ranks, strict=True)
    )
    if not same:
        raise InputError("the systems were not measured on the same images and captions in one order: align them")


def holm(chances: Sequence[float]) -> list[float]:
    """Correct the p-values of several tests for each other.

    If corrected values below 0.05 are taken as differences, the chance of one or more false differences is at most 5 %,
    however the tests depend on each other.

    Args:
        chances: The p of each test.

    Returns:
        The corrected p, in the same order; each is at least the given p and at most 1.

    Source: Holm, Scandinavian Journal of Statistics 1979.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected, largest = [0.0] * len(chances), 0.0
    for done, at in enumerate(sorted(range(len(chances)), key=lambda at: chances[at])):
        largest = max(largest, min(1.0, (len(chances) - done) * chances[at]))
        corrected[at] = largest
    return corrected
