"""Whether two systems differ by more than chance on the same queries, and how far training seeds of
one spread.

Several seeds of both are compared for other seeds and other images at once. Seeds of two recipes
are taken as independent: the same seed in both means the same order of batches, no more. Single
runs are compared by random swaps of their results, image by image.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pipeline.foundation.evaluation.metrics.base import STATISTICS, Statistic
from pipeline.foundation.evaluation.metrics.standard import Metrics
from pipeline.foundation.evaluation.retrieval import Floats, Ids, Ranks
from pipeline.foundation.evaluation.statistics import image_hits
from pipeline.foundation.evaluation.statistics.all_pairs import DIGITS, ROUNDING, p_of
from pipeline.foundation.evaluation.statistics.distributions import quantile, quantiles
from pipeline.foundation.evaluation.statistics.image_hits import FoldHits
from pipeline.foundation.evaluation.statistics.power import OverImages, OverSeeds
from pipeline.foundation.evaluation.statistics.welch import Runs, variances, welch
from pipeline.foundation.evaluation.statistics.wilson import Interval, check_confidence, effective
from pipeline.foundation.parts.errors import InputError, counted

# The hits of a system's runs, each by fold, all of the same queries.
Hits: TypeAlias = Sequence[Sequence[FoldHits]]
Counts: TypeAlias = npt.NDArray[np.int32]
# Signs of images in swapped test sets that are drawn at once, so that they fit the processor's
# cache; of how many test sets at most.
SIGNS_AT_ONCE = 1 << 19
SETS_AT_ONCE = 1 << 10
# Swaps of so many images and test sets are kept for the next pair of systems.
MOST_KEPT = 1 << 23


@dataclass(frozen=True)
class Comparison:
    """The second system minus the first."""

    difference: Interval  # with its interval, in percent (for RSUM, the sum of percentages)
    p: float  # two-sided
    resolution: float  # the least p that the random swaps can give; 0 for a test without swaps
    # The test and what it was applied to. Over seeds, interval and p cover other seeds and other
    # images, otherwise other images alone. Its `needs` says how many would make a difference of
    # this size significant.
    evidence: OverImages | OverSeeds

    @property
    def over_seeds(self) -> bool:
        """Whether interval and p cover other seeds."""
        return isinstance(self.evidence, OverSeeds)


def compare(
    first: Metrics | Sequence[Metrics],
    second: Metrics | Sequence[Metrics],
    samples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
    over_seeds: bool = True,
) -> dict[Statistic, Comparison]:
    """Test whether `second` differs from `first` on the same queries.

    With two or more seeds of both, interval and p cover other seeds and other images
    (`difference_over_seeds`). A single run does not show how far its recipe's seeds spread. Then,
    and where that test is not wanted, they cover other images alone (`difference_of_runs`), and
    several seeds of one system are averaged query by query.

    Args:
        first: One run, or several that differ in their training seed.
        second: Likewise, on the same images and captions.
        samples: How many swaps to draw, of a test over images alone.
        confidence: Of the intervals, between 0 and 1.
        seed: Of the random draws.
        over_seeds: Whether two systems with several seeds are tested over seeds and images.

    Returns:
        A comparison for each of `STATISTICS`, and for each further metric of the runs.

    Raises:
        InputError: If the runs were not measured by one protocol on the same images and captions.
    """
    old = _as_runs(first)
    new = _as_runs(second)
    check_same_queries([*old, *new])
    return compare_hits(hits_of(old), hits_of(new), samples, confidence, seed, over_seeds)


def hits_of(runs: Sequence[Metrics]) -> Hits:
    """The hits of a system's runs."""
    return [image_hits.gather_all(run) for run in runs]


def check_same_queries(runs: Sequence[Metrics]) -> None:
    """Check that all were measured by one protocol on the same images and captions."""
    for run in runs[1:]:
        _check_same_queries(runs[0], run)


def compare_hits(
    old: Hits,
    new: Hits,
    samples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
    over_seeds: bool = True,
) -> dict[Statistic, Comparison]:
    """Test as `compare` does from the hits of each image alone, each run's by fold; all of the same
    queries.
    """
    check_confidence(confidence)
    minus = [b.minus(a) for a, b in zip(mean_of_runs(old), mean_of_runs(new), strict=True)]
    gaps = image_hits.statistics(minus)
    most = image_hits.most(minus)
    evidence: list[OverImages] | list[OverSeeds]
    if over_seeds and len(old) > 1 and len(new) > 1:
        runs = (Runs.of(old), Runs.of(new))
        resolution = 0.0
        low, high, p = difference_over_seeds(*runs, most, confidence)
        evidence = OverSeeds.of(*runs, most)
    else:
        low, high, p = difference_of_runs(minus, samples, most, confidence, seed)
        low, high = with_unseen(minus, low, high, confidence)
        evidence = [OverImages(values, samples) for values in image_hits.parts(minus).T]
        resolution = 1 / (1 + samples)
    comparisons = {}
    for at, name in enumerate(image_hits.names(minus)):
        difference = Interval(float(gaps[at]), float(low[at]), float(high[at]), confidence)
        comparisons[name] = Comparison(difference, float(p[at]), resolution, evidence[at])
    return comparisons


def _as_runs(runs: Metrics | Sequence[Metrics]) -> list[Metrics]:
    if isinstance(runs, Metrics):
        return [runs]
    return list(runs)


def mean_of_runs(group: Hits) -> list[FoldHits]:
    """Average the hits over runs on the same queries, fold by fold."""
    means = []
    for folds in zip(*group, strict=True):
        hits = np.mean([fold.hits for fold in folds], axis=0)
        means.append(replace(folds[0], hits=hits))
    return means


def _check_same_queries(first: Metrics, second: Metrics) -> None:
    if (first.protocol, first.ties) != (second.protocol, second.ties):
        raise InputError(
            f"the systems were measured by protocols {first.protocol} and {second.protocol}, ties "
            f"{first.ties} and {second.ties}: measure both alike"
        )
    if len(first.ranks) != len(second.ranks):
        raise InputError(
            f"the systems were measured in {len(first.ranks)} and in {counted(len(second.ranks), 'fold')}: "
            "measure both alike"
        )
    if not all(map(_same_queries, first.ranks, second.ranks)):
        raise InputError(
            "the systems were not measured on the same images and captions in one order: align them"
        )


def _same_queries(first: Ranks, second: Ranks) -> bool:
    return first.shape == second.shape and first.relevance.equals(second.relevance)


def holm(chances: Sequence[float]) -> list[float]:
    """The p-values of several tests (chances), corrected for each other, in the same order.

    If corrected values below 0.05 are taken as differences, the chance of one or more false
    differences is at most 5 %, however the tests depend on each other.

    Source: Holm, Scandinavian Journal of Statistics 1979.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    factors = holm_factors(chances)
    corrected = [0.0] * len(chances)
    largest = 0.0
    for at in sorted(range(len(chances)), key=lambda at: -factors[at]):
        largest = max(largest, min(1.0, factors[at] * chances[at]))
        corrected[at] = largest
    return corrected


def benjamini_yekutieli(chances: Sequence[float]) -> list[float]:
    """The q of several tests, from their p-values (chances), in the same order.

    If tests with q below 0.05 are taken as differences, at most 5 % of these are false in the mean
    over studies, however the tests depend on each other. Benjamini and Hochberg's q are smaller by
    the factor 1 + 1/2 + ... + 1/M for M tests, but hold for tests that go together. Tests of all
    pairs do not: where chance makes one system better, its lead over some grows and its lag behind
    others shrinks.

    Source: Benjamini and Yekutieli, Annals of Statistics 2001.

    >>> benjamini_yekutieli([0.01, 0.04])
    [0.03, 0.06]
    """
    count = len(chances)
    factor = yekutieli_factor(count)
    q = [0.0] * count
    least = 1.0
    descending = sorted(range(count), key=lambda at: -chances[at])
    for before, at in enumerate(descending):
        least = min(least, factor * chances[at] / (count - before))
        q[at] = least
    return q


def yekutieli_factor(tests: int) -> float:
    """What the smallest p of so many tests is multiplied by, if no other one is as small."""
    return sum(tests / place for place in range(1, tests + 1))


def holm_factors(chances: Sequence[float]) -> list[int]:
    """What Holm's correction multiplies each p by: the number of tests that are not before it in
    the order of p.
    """
    count = len(chances)
    factors = [0] * count
    ascending = sorted(range(count), key=chances.__getitem__)
    for before, at in enumerate(ascending):
        factors[at] = count - before
    return factors


def enough_samples(samples: int, tests: int) -> int:
    """The least number of swaps, from samples on, for a p below 0.05 after Holm's correction for
    these tests.

    The least p of a randomisation test is 1 / (1 + swaps), which the correction multiplies by the
    number of tests.
    """
    return max(samples, 40 * tests)


def difference_of_runs(
    folds: Sequence[FoldHits], samples: int, most: Floats, confidence: float, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Estimate the difference of two runs for other images; variation over training seeds is not
    covered: the ends of the intervals, and p.

    `with_unseen` makes these intervals those of `compare`.

    p comes from the paired randomisation test: if the systems were equally good, swapping their
    results on any image would change nothing, so p = (1 + number of random swaps whose difference
    is at least as large in size) / (1 + samples). The interval holds the differences that the same
    swaps do not reject, after they are subtracted from each image: it excludes 0 exactly if p is
    below 1 - confidence. With few images it reaches to `most`. The pool of candidates is fixed.

    Source: Smucker, Allan and Carterette, CIKM 2007; intervals: Edgington and Onghena,
        Randomization Tests, 2007.
    """
    if samples < 1:
        raise InputError(f"expected samples from 1 up, received {samples}")
    parts, weights, direction = _in_one_direction(folds)
    measured = parts.mean(1)
    swapped, shares = _swapped(parts, weights, samples, seed)
    p = p_of(_as_large(swapped.T, measured), samples)
    # A swap does not reject d where |swapped - d shares| >= |measured - d|: from one of these ends
    # to the other.
    with np.errstate(divide="ignore", invalid="ignore"):
        one_end = (measured - swapped) / (1 - shares)
        other_end = (measured + swapped) / (1 + shares)
    ends = np.stack([one_end, other_end])
    # All images swapped, or none: it rejects none.
    rejects_none = 1 - np.abs(shares) < 1e-9
    ends = np.where(rejects_none, [[-most], [most]], ends)
    # The same tolerance as for p, so that both decide alike about 0.
    ends = np.where(np.abs(ends) < 1e-9, 0.0, ends)
    wanted = math.ceil((1 - confidence) * (1 + samples) - 1 - 1e-9)
    if wanted < 1:
        return -most, most, p
    ends = np.sort(direction * ends, axis=0)
    low = np.sort(ends[0], axis=0)[wanted - 1]
    high = np.sort(ends[1], axis=0)[-wanted]
    return np.clip(low, -most, most), np.clip(high, -most, most), p


def with_unseen(
    folds: Sequence[FoldHits], low: Floats, high: Floats, confidence: float
) -> tuple[Floats, Floats]:
    """Widen intervals of `difference_of_runs` for images that the test set does not have.

    Where few images differ, swaps of these few say little of other images; where none does, their
    interval is [0, 0]. So it is widened to hold the adjusted Wald interval of a paired difference:
    queries that the second system alone finds and those that the first alone finds count a
    quarter of the squared quantile of t more each, which is one of each for 95 %. Images count as
    the number of independent queries that carry as much information. No end moves to 0 or past
    it, so that the interval still excludes 0 exactly if p is below 1 - confidence.
    `docs/measured.md` shows how often the intervals hold the true difference.

    Args:
        folds: The differences in hits.
        low: The lower ends by swaps, in percent, [7].
        high: The upper ends.
        confidence: Of the intervals.

    Returns:
        The ends, float64 [7] each.

    Source: Bonett and Price, British Journal of Mathematical and Statistical Psychology 2012.
    """
    most = image_hits.most(folds)
    values = image_hits.parts(folds) / most
    squares = ((image_hits.contributions(folds) / most) ** 2).sum(0)
    images = len(values)
    better = np.maximum(values, 0).mean(0)
    worse = np.maximum(-values, 0).mean(0)
    variance = better + worse - (better - worse) ** 2
    worth = effective(variance, squares, images)
    t = quantile(max(images - 1, 1), (1 + confidence) / 2)
    added = t * t / 4
    better = (worth * better + added) / (worth + 2 * added)
    worse = (worth * worse + added) / (worth + 2 * added)
    middle = better - worse
    half = t * np.sqrt((better + worse - middle**2) / (worth + 2 * added))
    wide_low = np.minimum(low, most * np.maximum(middle - half, -1))
    wide_high = np.maximum(high, most * np.minimum(middle + half, 1))
    wide_low = np.where((low > 0) & (wide_low <= 0), low, wide_low)
    wide_high = np.where((high < 0) & (wide_high >= 0), high, wide_high)
    return wide_low, wide_high


def _swapped(parts: Floats, weights: Floats, samples: int, seed: int) -> tuple[Floats, Floats]:
    """The differences after random swaps, and the shares of a difference that all images have:
    float64 [S, 7] each.
    """
    canonical, order = _canonical(parts, weights)
    sums = _SignedSums(canonical[:, order])
    drawn = [sums.means(counts) for counts in _swaps(parts.shape[1], samples, seed)]
    swapped, shares = np.split(np.concatenate(drawn, axis=1).T, 2, axis=1)
    return swapped, shares


def _as_large(swapped: Floats, measured: Floats) -> Floats:
    """How many of the swaps [R, S] have a difference as large as the measured ones [R]."""
    limit = np.abs(measured) - ROUNDING
    reached = np.abs(swapped) >= limit[:, None]
    return np.asarray(reached.sum(1))


def _in_one_direction(folds: Sequence[FoldHits]) -> tuple[Floats, Floats, int]:
    """Take the same one of a difference and its opposite, whichever is given, in any order of
    images. Further metrics, which come after `STATISTICS`, decide only where these do not.

    Returns the images' parts of it [M, N], their shares of a difference that all have [M, N], and
    -1 if it is the opposite, otherwise 1.
    """
    parts = image_hits.parts(folds)
    weights = image_hits.weights(folds)
    keys = {}
    for direction in (1, -1):
        of_tables = []
        for columns in (len(STATISTICS), parts.shape[1]):
            table = np.hstack([direction * parts[:, :columns], weights[:, :columns]])
            table = table.round(DIGITS) + 0.0  # -0.0 becomes 0.0
            of_tables.append(table[np.lexsort(table.T)].tobytes())
        keys[direction] = of_tables
    direction = min(keys, key=keys.__getitem__)
    return direction * parts.T, weights.T, direction


def _canonical(parts: Floats, weights: Floats) -> tuple[Floats, Ids]:
    """Turn each image's parts [R, N], so that they are the same whichever system comes first, and
    order the images by them.

    A swap draws one sign for an image, that of all its parts, so parts may be turned together: the
    last that is not 0, RSUM's where it is not, becomes positive. Images that do not differ are the
    last. Further metrics come after `STATISTICS`, and change nothing of these.

    Returns the turned parts, with the weights turned with them below [2R, N], and the order [N].
    """
    rounded = parts.round(DIGITS)
    of_statistics = rounded[: len(STATISTICS)]
    last = len(STATISTICS) - 1 - np.argmax(of_statistics[::-1] != 0, axis=0)
    signs = np.where(np.take_along_axis(of_statistics, last[None], 0) < 0, -1.0, 1.0)
    turned = signs * parts
    of_weights = signs * weights
    of_further = signs * rounded[len(STATISTICS) :]
    keys = [-of_further, of_weights.round(DIGITS), -(signs * of_statistics)]
    return np.concatenate([turned, of_weights]), np.lexsort(np.concatenate(keys))


def _swaps(images: int, samples: int, seed: int) -> Iterable[Counts]:
    """Give each image the sign + or - in each swapped test set: how many of the first 1, 2, … N
    images have +, int32 [N, S], until S is samples in all.
    """
    if images * samples <= MOST_KEPT:
        return _kept_swaps(images, samples, seed)
    return _drawn_swaps(images, samples, seed)


@lru_cache(maxsize=1)
def _kept_swaps(images: int, samples: int, seed: int) -> list[Counts]:
    """The same, kept for the next pair of systems."""
    return list(_drawn_swaps(images, samples, seed))


def _drawn_swaps(images: int, samples: int, seed: int) -> Iterator[Counts]:
    """The same, one block of test sets after another."""
    generator = np.random.default_rng(seed)
    # A byte is drawn for eight test sets.
    whole_bytes = SIGNS_AT_ONCE // images // 8 * 8
    most = max(8, min(SETS_AT_ONCE, whole_bytes))
    for start in range(0, samples, most):
        count = min(most, samples - start)
        size = (images, math.ceil(count / 8))
        drawn = generator.integers(0, 256, size, np.uint8)
        signs = np.unpackbits(drawn, axis=1, count=count)
        yield np.cumsum(signs, axis=0, dtype=np.int32)


class _SignedSums:
    """The means of R rows of N values after each value got the sign of its place.

    A run of equal values needs the number of its + alone, and most images have one of few values.
    """

    def __init__(self, values: Floats) -> None:
        # The sum of values with + is that of their steps down, each times the number of + before.
        steps = values - np.pad(values[:, 1:], ((0, 0), (0, 1)))
        steps[np.abs(steps) < ROUNDING] = 0
        self._places = np.flatnonzero(steps.any(0))
        self._steps = steps[:, self._places]
        self._mean = values.mean(1)

    def means(self, counts: Counts) -> Floats:
        """Average by the signs that `_swaps` gives, float64 [R, S]."""
        of_plus = self._steps @ counts[self._places].astype(np.float64) / len(counts)
        return np.asarray(2 * of_plus - self._mean[:, None])


def difference_over_seeds(
    first: Runs, second: Runs, most: Floats, confidence: float
) -> tuple[Floats, Floats, Floats]:
    """Estimate the difference of two recipes' means, for other seeds and other images at once.

    The variance of the difference has three parts: that of each recipe's mean over seeds, and the
    variance over images that all seeds share. Its degrees of freedom follow from those of the parts
    (Satterthwaite). Without the third part this is Welch's t test. Two-way bootstraps reject too
    often with as few seeds as are usual. `docs/measured.md` shows how often two equal
    recipes are reported as different: in 4 to 7 of 100 cases.

    Source: Satterthwaite, Biometrics Bulletin 1946.
    """
    images = first.contributions.shape[1]
    gap = second.values.mean(0) - first.values.mean(0)
    freedoms = [max(images - 1, 1), len(first.values) - 1, len(second.values) - 1]
    error, freedom, p = welch(gap, variances(first, second, most), freedoms)
    half = quantiles(freedom, (1 + confidence) / 2) * error
    return gap - half, gap + half, p


def deviations(runs: Sequence[Metrics]) -> dict[Statistic, float]:
    """The sample standard deviation of each of `STATISTICS`, and of further metrics, over two or
    more runs that differ in their seed.

    Raises:
        InputError: For fewer than two runs, or if they were not measured by one protocol on pools
            of one size.
    """
    if len(runs) < 2:
        raise InputError(f"a spread over seeds needs at least two runs, received {len(runs)}")
    # A protocol's name does not say its folds, whose sizes these are.
    kinds = {(run.protocol, run.ties, tuple(fold.shape for fold in run.ranks)) for run in runs}
    if len(kinds) > 1:
        raise InputError(
            f"runs differ in protocol, ties, images, captions or folds: {sorted(kinds)}"
        )
    names = [*STATISTICS, *runs[0].further]
    values = []
    for run in runs:
        values.append([run[name] for name in names])
    spread = np.std(values, axis=0, ddof=1)
    return dict(zip(names, spread.tolist(), strict=True))
