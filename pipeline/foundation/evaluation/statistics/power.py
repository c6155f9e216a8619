"""How many images, or seeds of both systems, would make a difference of the measured size
significant with a power of 0.8.

The test itself is simulated on test sets and seeds with the measured spread. A spread that was
measured on few images or seeds may be far from the true one, so each simulated case draws a true
spread among those that fit the measured one. With this the power is 0.8 on average: with three
seeds of each system two to three times as many seeds are needed as if the measured spread were the
true one.

Source: Julious and Owen, Pharmaceutical Statistics 2006 (sample sizes that allow for uncertainty
    about the variance).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from pipeline.foundation.evaluation.retrieval import Floats, Ids
from pipeline.foundation.evaluation.statistics.welch import Runs, variances, welch

# The chance that a difference of the measured size is significant.
POWER = 0.8
# The largest numbers that are looked for.
MOST_IMAGES = 10_000_000
MOST_SEEDS = 1000
# Simulated test sets for a number of images, and swaps of each.
TEST_SETS = 3000
SWAPS_OF_EACH = 4
# The least level whose tests are simulated.
LEAST_SIMULATED = 0.002
CASES = 10_000  # simulated cases for a number of seeds
# How many different values images may have; more of them, of captions with many ties, are rounded
# to a grid.
VALUES = 200

# How many images, or seeds of each system, would make a difference significant; None if not even
# the largest number would.
Needs = dict[str, int | None]


@dataclass(frozen=True)
class OverImages:
    """The paired randomisation test of two runs, and the results that it was applied to."""

    values: Floats  # float64 [N], each image's part of N times the difference
    swaps: int  # how many the test draws

    def needs(self, level: float) -> Needs:
        """The number of images, with their captions, at which p is below the level with a power of
        0.8.
        """
        mean = self.values.mean()
        square = (self.values**2).mean()
        critical = NormalDist().inv_cdf(1 - level / 2)
        sure = NormalDist().inv_cdf(POWER)
        if abs(mean) * math.sqrt(MOST_IMAGES) <= (critical + sure) * math.sqrt(square):
            return {"images": None}
        # The number of a normal test, and then that at which the simulated power would be right.
        images = (critical + sure) ** 2 * square / mean**2
        power_of = self.power
        if level < LEAST_SIMULATED:
            power_of = self.normal_power
        for _ in range(2):
            power = min(max(power_of(math.ceil(images), level), 0.01), 0.999)
            reached = NormalDist().inv_cdf(power)
            images *= ((critical + sure) / (critical + reached)) ** 2
        if images > MOST_IMAGES:
            return {"images": None}
        return {"images": math.ceil(images)}

    def normal_power(self, images: int, level: float) -> float:
        """The same of a test whose p is a normal one: simulated swaps do not show how rare the
        rarest are.
        """
        generator = np.random.default_rng(0)
        mean = abs(self.values.mean()) * _stretch(self.values, generator)
        expected = mean * math.sqrt(images) / math.sqrt((self.values**2).mean())
        measured = expected + generator.standard_normal(TEST_SETS)
        critical = NormalDist().inv_cdf(1 - level / 2)
        return float((measured > critical).mean())

    def power(self, images: int, level: float) -> float:
        """The chance that p is below the level on test sets of so many images."""
        generator = np.random.default_rng(0)
        values, shares = self._values()
        drawn = generator.multinomial(images, shares, size=TEST_SETS).astype(np.float64)
        size, group = np.unique(np.abs(values), return_inverse=True)
        alike = drawn @ (group[:, None] == np.arange(len(size)))
        length = np.sqrt(np.maximum(alike @ size**2, 1e-300))
        # Swaps keep a test set's length. Divided by it, swaps of all test sets have one
        # distribution. Each set's own swaps differ by twice the common step of its values: this is
        # a correction for continuity.
        step = np.diff(np.append(0, size[size > 0])).min()
        positive = generator.binomial(alike.astype(np.int64), 0.5, (SWAPS_OF_EACH, *alike.shape))
        swapped = np.abs((2 * positive - alike) @ size) / length
        swapped = np.sort(swapped.ravel())
        mean = abs(self.values.mean()) * _stretch(self.values, generator)
        differences = np.abs(drawn @ values + images * (mean - values @ shares))
        measured = (differences - step) / length
        larger = 1 - np.searchsorted(swapped, measured - 1e-9) / len(swapped)
        # p is below the level if at most so many of the test's own swaps are as large as the
        # measured difference.
        most = math.ceil((1 + self.swaps) * level - 1 - 1e-9) - 1
        return float((generator.binomial(self.swaps, larger) <= most).mean())

    def _values(self) -> tuple[Floats, Floats]:
        """The different values, of the better run over the other whichever comes first, and which
        share of the images has each.
        """
        gains = self.values
        if gains.mean() < 0:
            gains = -gains
        values, counts = np.unique(gains.round(9), return_counts=True)
        if len(values) > VALUES:
            step = np.ptp(values) / VALUES
            rounded = (gains / step).round() * step
            values, counts = np.unique(rounded, return_counts=True)
        return values, counts / len(self.values)


def _stretch(values: Floats, generator: np.random.Generator) -> Floats:
    """For each test set the measured deviation of values over a true one.

    The degrees of freedom are those of a variance of values with this kurtosis; of a normal
    distribution N - 1.
    """
    apart = values - values.mean()
    variance = (apart**2).mean()
    if variance <= 0:
        return np.ones(TEST_SETS)
    kurtosis = (apart**4).mean() / variance**2
    freedom = max(1.0, 2 * len(values) / max(kurtosis - 1, 1e-3))
    return np.asarray(np.sqrt(generator.chisquare(freedom, TEST_SETS) / freedom))


@dataclass(frozen=True)
class OverSeeds:
    """The test of two recipes over seeds and images, and what it was applied to."""

    difference: float
    images: int
    shared: float  # the variance of the difference over images that all seeds have in common
    variance: Floats  # float64 [2], of a run over seeds
    # float64 [2], the part of it that comes from images on which a run fails by itself.
    by_image: Floats
    seeds: Ids  # int64 [2]

    @classmethod
    def of(cls, first: Runs, second: Runs, most: Floats) -> "list[OverSeeds]":
        """The evidence of each statistic; most: the largest value of each."""
        counts = np.array([len(first.values), len(second.values)])
        shared, *_ = variances(first, second, most)
        variance = np.stack((first.variance(), second.variance()), 1) * counts
        by_image = np.stack((first.by_image_alone(), second.by_image_alone()), 1) * counts
        gaps = second.values.mean(0) - first.values.mean(0)
        images = first.contributions.shape[1]
        evidence = []
        for at, gap in enumerate(gaps):
            of_statistic = cls(
                float(gap), images, float(shared[at]), variance[at], by_image[at], counts
            )
            evidence.append(of_statistic)
        return evidence

    def needs(self, level: float) -> Needs:
        """The number of seeds of each recipe, and the number of images with these seeds, that would
        each be enough.
        """
        both = np.array([1, 1])

        def power_of_seeds(seeds: int) -> float:
            return self.power(seeds * both, self.images, level)

        def power_of_images(images: int) -> float:
            return self.power(self.seeds, images, level)

        return {
            "seeds": least(power_of_seeds, 2, MOST_SEEDS),
            "images": least(power_of_images, 2, MOST_IMAGES),
        }

    def power(self, seeds: Ids, images: int, level: float) -> float:
        """The chance that p is below the level with so many seeds of each and so many images."""
        generator = np.random.default_rng(0)

        def ratio(freedom: Any, *size: int) -> Floats:
            """Measured variances over true ones."""
            return np.asarray(generator.chisquare(freedom, size) / freedom)

        shared, variance = self._spread(images)
        measured_seeds = self.seeds
        # The better recipe is simulated last, so that the draws do not depend on the order of the
        # two.
        if self.difference < 0:
            variance = variance[::-1]
            seeds = seeds[::-1]
            measured_seeds = measured_seeds[::-1]
        # Both recipes' seeds spread more or less than measured by one factor, with the freedom of
        # their sum.
        freedom = variance.sum() ** 2 / max((variance**2 / (measured_seeds - 1)).sum(), 1e-300)
        factor = np.ones((CASES, 1))
        if freedom > 0:
            factor = ratio(freedom, CASES, 1)
        true = variance / seeds / factor
        error = np.sqrt(shared + true.sum(1))
        gap = abs(self.difference) + error * generator.standard_normal(CASES)
        measured_shared = shared * ratio(images - 1, CASES)
        measured = true * ratio(seeds - 1.0, CASES, 2)
        parts = np.stack([measured_shared, *measured.T])
        _, _, p = welch(gap, parts, [images - 1, *(seeds - 1)])
        return float((p < level).mean())

    def parts(self, seeds: Ids, images: int) -> Floats:
        """The variance of the difference with so many seeds of each and so many images: over images
        that all seeds share, and of each recipe over seeds, float64 [3].
        """
        shared, variance = self._spread(images)
        return np.array([shared, *(variance / seeds)])

    def _spread(self, images: int) -> tuple[float, Floats]:
        """The variances on so many images: that which all seeds share, and each recipe's of a
        run.
        """
        shared = self.shared * self.images / images
        by_image = self.by_image * self.images / images
        return shared, np.maximum(self.variance - self.by_image, 0) + by_image


def least(power: Callable[[int], float], least: int, most: int) -> int | None:
    """The least number with enough power, to a hundredth; None if the most has not."""
    if power(most) < POWER:
        return None
    while most - least > least // 100:
        middle = (least + most) // 2
        if least < most // 2:
            middle = int(math.sqrt(least * most))
        if power(middle) < POWER:
            least = middle + 1
        else:
            most = middle
    return most
