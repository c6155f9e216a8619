"""How far repeated runs of one system spread: the same model and data, computed twice or more.

Batch size, kernel, dtype and engine change scores a little, and a training seed changes them more.
What is measured holds for the changes between the runs that are given, and for no others.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pipeline.foundation.evaluation.metrics.base import STATISTICS, Statistic
from pipeline.foundation.evaluation.metrics.standard import Metrics
from pipeline.foundation.evaluation.retrieval import Direction, Floats
from pipeline.foundation.evaluation.statistics import image_hits
from pipeline.foundation.evaluation.statistics.distributions import chi_square, quantile
from pipeline.foundation.evaluation.statistics.welch import Runs

CONFIDENCE = 0.95
# Runs whose numbers are closer to each other than this are equal.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Spread:
    """How far the runs of one system spread in one number, in its own unit."""

    mean: float
    gap: float  # the largest difference of two of the runs
    deviation: float  # the standard deviation of a run
    # The deviation if each image's hits moved independently of other images', None for ranks. What
    # the measured one has beyond this is common to many images, and more images do not reduce it.
    by_image: float | None
    of_two: float  # what the difference of two more runs stays below in 95 % of cases
    freedom: int  # the degrees of freedom of the deviation: the number of runs minus 1

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the true standard deviation, from the chi-square distribution; None
        where the runs have equal numbers, by chance or since nothing moves.
        """
        if self.deviation == 0:
            return None
        low, high = factors(self.freedom)
        return low * self.deviation, high * self.deviation


@dataclass(frozen=True)
class Moved:
    """The queries of one direction whose rank of the first right candidate moves, in percent."""

    queries: int
    between_two: float  # the mean over all pairs of runs
    most: float  # of the pair with the largest share
    in_any: float  # those that do not have one rank in all runs


@dataclass(frozen=True)
class Limit:
    """What the difference of two systems stays below by noise alone, in 95 % of cases."""

    limit: float
    freedom: float  # the degrees of freedom of the deviation over runs


def factors(freedom: int) -> tuple[float, float]:
    """By what a standard deviation is multiplied for the ends of its 95 % interval.

    >>> "{:.2f} {:.1f}".format(*factors(1))
    '0.45 31.9'
    """
    tails = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
    low, high = (math.sqrt(freedom / chi_square(freedom, tail)) for tail in tails)
    return low, high


def spreads(runs: Sequence[Metrics]) -> dict[Statistic, Spread]:
    """The spread of each number that all runs have."""
    of_runs = _OfRuns.of(runs)
    known = {}
    for name in runs[0].numbers:
        values = [run[name] for run in runs]
        if not np.isfinite(values).all():
            continue
        of_two = _reach([of_runs], name, [1, 1])
        known[name] = Spread(
            mean=float(np.mean(values)),
            gap=max(values) - min(values),
            deviation=of_runs.deviation(name),
            by_image=of_runs.by_image.get(name),
            of_two=of_two.limit,
            freedom=len(runs) - 1,
        )
    return known


def moved(runs: Sequence[Metrics]) -> dict[Direction, Moved]:
    """How many queries' ranks of the first right candidate differ between runs, by direction; ties
    count as in the metrics.
    """
    shares: dict[Direction, Moved] = {}
    for way in runs[0].directions:
        ranks = np.stack([_ranks(run, way) for run in runs])
        between = []
        for first, second in combinations(ranks, 2):
            between.append(100 * float(np.mean(first != second)))
        in_any = 100 * float(np.mean(np.any(ranks != ranks[0], axis=0)))
        shares[way] = Moved(ranks.shape[1], float(np.mean(between)), max(between), in_any)
    return shares


def limits(first: Sequence[Metrics], second: Sequence[Metrics]) -> dict[Statistic, Limit]:
    """What the difference of two systems' means stays below by noise alone, in each number that all
    runs have; {} where both systems have a single run.

    The noise of a system with a single run is taken to be that of the other one. The deviation of
    the difference is s sqrt(1 / n_a + 1 / n_b) where one system has several runs, and
    sqrt(s_a² / n_a + s_b² / n_b) with Satterthwaite's degrees of freedom where both have.
    """
    repeated = [_OfRuns.of(runs) for runs in (first, second) if len(runs) > 1]
    if not repeated:
        return {}
    counts = [len(first), len(second)]
    known = {}
    for name in first[0].numbers:
        if all(math.isfinite(run[name]) for run in (*first, *second)):
            known[name] = _reach(repeated, name, counts)
    return known


@dataclass(frozen=True)
class _OfRuns:
    """The runs of one system, and how far its recalls would spread if images moved
    independently.
    """

    runs: Sequence[Metrics]
    by_image: Mapping[Statistic, float]
    images: int

    @classmethod
    def of(cls, runs: Sequence[Metrics]) -> "_OfRuns":
        """The deviation by image is sqrt(σ² / N), where σ² is the mean square of each image's part
        after the image's mean over runs and the run's mean over images are taken away.
        """
        folds = [image_hits.gather(run) for run in runs]
        values = np.array([image_hits.statistics(run) for run in folds])
        apart = np.array([image_hits.contributions(run) for run in folds])
        variance = len(runs) * Runs(values, apart).by_image_alone()
        by_image = dict(zip(STATISTICS, np.sqrt(variance).tolist(), strict=True))
        return cls(runs, by_image, apart.shape[1])

    def deviation(self, name: Statistic) -> float:
        """The sample standard deviation, 0 for values that are equal but for rounding."""
        values = [run[name] for run in self.runs]
        if max(values) - min(values) < ROUNDING:
            return 0.0
        return float(np.std(values, ddof=1))


def _reach(repeated: Sequence[_OfRuns], name: Statistic, counts: Sequence[int]) -> Limit:
    """What the difference of two systems' means over so many runs stays below by noise alone, in
    95 % of cases: Student's t times its deviation.

    It is at least what images that move independently would give: two runs may have the same number
    by chance, though many ranks differ.
    """
    freedoms = [len(of_one.runs) - 1 for of_one in repeated]
    deviations = [of_one.deviation(name) for of_one in repeated]
    limit, freedom = _of_two_means(deviations, freedoms, counts)
    by_image = [of_one.by_image.get(name, 0.0) for of_one in repeated]
    many = [len(of_one.runs[1:]) * max(of_one.images - 1, 1) for of_one in repeated]
    at_least, _ = _of_two_means(by_image, many, counts)
    return Limit(max(limit, at_least), freedom)


def _of_two_means(
    deviations: Sequence[float], freedoms: Sequence[int], counts: Sequence[int]
) -> tuple[float, float]:
    """The limit of the difference of two means, and its degrees of freedom; one deviation is that
    of both systems.

    Source: Satterthwaite, Biometrics Bulletin 1946.
    """
    if len(deviations) == 1:
        freedom: float = freedoms[0]
        error = deviations[0] * math.sqrt(1 / counts[0] + 1 / counts[1])
    else:
        parts = [s**2 / count for s, count in zip(deviations, counts, strict=True)]
        error = math.sqrt(sum(parts))
        freedom = min(freedoms)
        if error > 0:
            weighted = [part**2 / of_one for part, of_one in zip(parts, freedoms, strict=True)]
            freedom = sum(parts) ** 2 / sum(weighted)
    return quantile(freedom, (1 + CONFIDENCE) / 2) * error, freedom


def _ranks(run: Metrics, way: Direction) -> Floats:
    """The ranks of all folds' queries of a direction."""
    return np.concatenate([getattr(fold, way).ranks(run.ties) for fold in run.ranks])
