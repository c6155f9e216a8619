"""Whether two systems differ by more than chance on the same queries, and how far training seeds of
one spread.

Several seeds of both are compared for other seeds and other images at once. Seeds of two recipes
are taken as independent: the same seed in both means the same order of batches, no more. Single
runs are compared by random swaps of their results, image by image.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pipeline.evaluation.metrics.numbers import RECALLS, STATISTICS, Statistic
from pipeline.evaluation.metrics.standard import Metrics
from pipeline.evaluation.retrieval import Floats
from pipeline.evaluation.statistics import image_hits
from pipeline.evaluation.statistics.image_hits import MOST, FoldHits
from pipeline.evaluation.statistics.power import OverImages, OverSeeds
from pipeline.evaluation.statistics.welch import Runs, variances, welch
from pipeline.evaluation.statistics.wilson import Interval, check_confidence
from pipeline.parts.errors import InputError

# Systems whose corrected p is below this are told apart.
LEVEL = 0.05
# Differences that are closer to each other than this count as equal.
ROUNDING = 1e-9
# To so many digits an image's parts of two differences are compared.
DIGITS = 9
# Images of swapped test sets in memory at once, 8 bytes each for signs; and pairs of systems.
DRAWN_AT_ONCE, PAIRS_AT_ONCE = 2_000_000, 64


@dataclass(frozen=True)
class Comparison:
    """The second system minus the first."""

    difference: Interval  # with its interval, in percent (for RSUM, the sum of percentages)
    p: float  # two-sided
    resolution: float  # the least p that the random swaps can give; 0 for a test without swaps
    # The test and what it was applied to. Over seeds, interval and p cover other seeds and other
    # images, otherwise other images alone. Its `needs` says how many would tell a difference of
    # this size.
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
) -> dict[Statistic, Comparison]:
    """Test whether `second` differs from `first` on the same queries.

    With two or more seeds of both, interval and p cover other seeds and other images
    (`difference_over_seeds`). A single run does not show how far its recipe's seeds spread. Then
    they cover other images alone (`difference_of_runs`), and several seeds of one side are averaged
    query by query.

    Args:
        first: One run, or several that differ in their training seed.
        second: Likewise, on the same images and captions.
        samples: How many swaps to draw; used if one side is a single run.
        confidence: Of the intervals, between 0 and 1.
        seed: Of the random draws; used if one side is a single run.

    Returns:
        A comparison for each of `STATISTICS`.

    Raises:
        InputError: If the runs were not measured by one protocol on the same images and captions.
    """
    check_confidence(confidence)
    before, after = (
        [each] if isinstance(each, Metrics) else list(each) for each in (first, second)
    )
    for run in (*before[1:], *after):
        _check_same_queries(before[0], run)
    old, new = ([image_hits.gather(run) for run in group] for group in (before, after))
    minus = [b.minus(a) for a, b in zip(_mean(old), _mean(new), strict=True)]
    gaps = image_hits.statistics(minus)
    evidence: list[OverImages] | list[OverSeeds]
    if len(old) > 1 and len(new) > 1:
        runs, resolution = (_runs(old), _runs(new)), 0.0
        low, high, p = difference_over_seeds(*runs, MOST, confidence)
        evidence = OverSeeds.of(*runs, MOST)
    else:
        low, high, p = difference_of_runs(minus, samples, MOST, confidence, seed)
        evidence, resolution = (
            [OverImages(each, samples) for each in image_hits.parts(minus).T],
            1 / (1 + samples),
        )
    return {
        name: Comparison(
            Interval(float(gaps[at]), float(low[at]), float(high[at]), confidence),
            float(p[at]),
            resolution,
            evidence[at],
        )
        for at, name in enumerate(STATISTICS)
    }


def _runs(group: Sequence[Sequence[FoldHits]]) -> Runs:
    return Runs(
        np.array([image_hits.statistics(run) for run in group]),
        np.array([image_hits.contributions(run) for run in group]),
    )


def _mean(group: Sequence[Sequence[FoldHits]]) -> list[FoldHits]:
    """Average the hits over runs on the same queries, fold by fold."""
    return [
        FoldHits(np.mean([fold.hits for fold in folds], axis=0), folds[0].queries)
        for folds in zip(*group, strict=True)
    ]


def _check_same_queries(first: Metrics, second: Metrics) -> None:
    if (first.protocol, first.ties) != (second.protocol, second.ties):
        raise InputError(
            f"the systems were measured by protocols {first.protocol} and {second.protocol}, ties "
            f"{first.ties} and {second.ties}: measure both alike"
        )
    if len(first.ranks) != len(second.ranks) or not all(
        before.shape == after.shape and before.relevance.equals(after.relevance)
        for before, after in zip(first.ranks, second.ranks, strict=True)
    ):
        raise InputError(
            "the systems were not measured on the same images and captions in one order: align them"
        )


def holm(chances: Sequence[float]) -> list[float]:
    """The p-values of several tests (chances), corrected for each other, in the same order.

    If corrected values below 0.05 are taken as differences, the chance of one or more false
    differences is at most 5 %, however the tests depend on each other.

    Source: Holm, Scandinavian Journal of Statistics 1979.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected, largest = [0.0] * len(chances), 0.0
    factors = holm_factors(chances)
    for at in sorted(range(len(chances)), key=lambda at: -factors[at]):
        largest = max(largest, min(1.0, factors[at] * chances[at]))
        corrected[at] = largest
    return corrected


def holm_factors(chances: Sequence[float]) -> list[int]:
    """What Holm's correction multiplies each p by: the number of tests that are not before it in
    the order of p.
    """
    factors = [0] * len(chances)
    for before, at in enumerate(sorted(range(len(chances)), key=lambda at: chances[at])):
        factors[at] = len(chances) - before
    return factors


def chances(systems: Sequence[Sequence[FoldHits]], samples: int, seed: int = 0) -> Floats:
    """The p of `compare` for every two of M systems' single runs, float64 [M, M, 7], by the same
    swaps.

    samples: how many are drawn, by the seed.
    """
    pairs = [*combinations(range(len(systems)), 2)]
    found = np.ones((len(systems), len(systems), len(STATISTICS)))
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        some = pairs[start : start + PAIRS_AT_ONCE]
        parts = np.stack(
            [
                _in_one_order(
                    [b.minus(a) for a, b in zip(systems[first], systems[second], strict=True)]
                )[0]
                for first, second in some
            ],
            1,
        )
        p = _share_as_large(_swapped(parts, samples, seed), parts.mean(0))
        for (first, second), each in zip(some, p, strict=True):
            found[first, second] = found[second, first] = each
    return found


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
    covered.

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
    parts, weights, sign = _in_one_order(folds)
    found = parts.mean(0)
    drawn = _swapped(np.hstack([parts, weights]), samples, seed)
    swapped, common = np.split(drawn, [len(STATISTICS)], axis=1)
    common = np.repeat(common, len(RECALLS), axis=1)
    shares = np.hstack([common, common.mean(1, keepdims=True)])
    p = _share_as_large(swapped, found)
    # A swap does not reject d where |swapped - d shares| >= |found - d|: from one of these ends to
    # the other.
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack([(found - swapped) / (1 - shares), (found + swapped) / (1 + shares)])
    ends = np.where(
        1 - np.abs(shares) < 1e-9, [[-most], [most]], ends
    )  # all images swapped, or none: it rejects none
    ends = np.where(
        np.abs(ends) < 1e-9, 0.0, ends
    )  # the same tolerance as for p, so that both decide alike about 0
    wanted = math.ceil((1 - confidence) * (1 + samples) - 1 - 1e-9)
    if wanted < 1:
        return -most, most, p
    ends = np.sort(sign * ends, axis=0)
    low, high = np.sort(ends[0], axis=0)[wanted - 1], np.sort(ends[1], axis=0)[-wanted]
    return np.clip(low, -most, most), np.clip(high, -most, most), p


def _share_as_large(swapped: Floats, found: Floats) -> Floats:
    """The share of swaps [samples, ...] with a difference as large as the measured one, which is
    itself a swap.
    """
    return np.asarray(
        (1 + (np.abs(swapped) >= np.abs(found) - ROUNDING).sum(0)) / (1 + len(swapped))
    )


def _in_one_order(folds: Sequence[FoldHits]) -> tuple[Floats, Floats, int]:
    """Sort images by their parts of a difference, so that the same swaps are drawn for them in any
    order, and for two systems in either.

    Returns their parts [N, 7], or -1 times these; their weights [N, 2]; and 1 or -1.
    """
    parts, weights = image_hits.parts(folds), image_hits.weights(folds)
    sorted_by_sign = []
    for sign in (1, -1):
        table = np.hstack([sign * parts, weights]).round(DIGITS) + 0.0  # -0.0 becomes 0.0
        order = np.lexsort(table.T)
        sorted_by_sign.append((table[order].tobytes(), sign, order))
    _, sign, order = min(sorted_by_sign, key=lambda each: each[0])
    return sign * parts[order], weights[order], sign


def _swapped(parts: Floats, samples: int, seed: int) -> Floats:
    """The mean of the images' parts [N, ...] after those of about half of the images are negated:
    float64 [samples, ...].
    """
    generator, images = np.random.default_rng(seed), len(parts)
    means = np.empty((samples, *parts.shape[1:]))
    most = max(1, DRAWN_AT_ONCE // images)  # memory stays bounded for any number of images
    for start in range(0, samples, most):
        part = means[start : start + most]
        signs = generator.integers(0, 2, size=(len(part), images)) * 2.0 - 1
        part[:] = np.tensordot(signs, parts, axes=1) / images
    return means


def difference_over_seeds(
    first: Runs, second: Runs, most: Floats, confidence: float
) -> tuple[Floats, Floats, Floats]:
    """Estimate the difference of two recipes' means, for other seeds and other images at once.

    The variance of the difference has three parts: that of each recipe's mean over seeds, and the
    variance over images that all seeds share. Its degrees of freedom follow from those of the parts
    (Satterthwaite). Without the third part this is Welch's t test. Two-way bootstraps reject too
    often with as few seeds as are usual. `docs/measured/intervals.md` shows how often two equal
    recipes are reported as different: in 4 to 7 of 100 cases.

    Source: Satterthwaite, Biometrics Bulletin 1946.
    """
    from scipy.special import stdtrit  # takes 0.2 s to import

    images = first.contributions.shape[1]
    gap = second.values.mean(0) - first.values.mean(0)
    error, freedom, p = welch(
        gap,
        variances(first, second, most),
        [max(images - 1, 1), len(first.values) - 1, len(second.values) - 1],
    )
    half = stdtrit(freedom, (1 + confidence) / 2) * error
    return gap - half, gap + half, p


def deviations(runs: Sequence[Metrics]) -> dict[Statistic, float]:
    """The sample standard deviation of each of `STATISTICS` over two or more runs that differ in
    their seed.

    Raises:
        InputError: For fewer than two runs, or if they were not measured by one protocol on pools
            of one size.
    """
    if len(runs) < 2:
        raise InputError(f"a spread over seeds needs at least two runs, received {len(runs)}")
    kinds = {(run.protocol, run.ties, run.images, run.captions) for run in runs}
    if len(kinds) > 1:
        raise InputError(f"runs differ in protocol, ties, images or captions: {sorted(kinds)}")
    spread = np.std([[run[name] for name in STATISTICS] for run in runs], axis=0, ddof=1)
    return dict(zip(STATISTICS, spread.tolist(), strict=True))
