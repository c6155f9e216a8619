"""Whether two systems are equal within a margin: two one-sided tests, each at 5 %.

They are equal within the margin if the 90 % interval of their difference is inside it. A difference
that is not significant does not show equality: with few images, neither is shown.

Over images the interval is that of a bootstrap-t, widened where few images differ;
`docs/measured.md` shows how often systems that differ by the margin are called equal.
Random swaps, which test whether there is a difference, are not used: they would need differences
that are symmetric about the margin, and the differences of R@1 are -1, 0 and 1.

A verdict is about one statistic of one pair, and is not corrected for others. That all of several
statistics are equal needs no correction either, since each of them has to be shown (an
intersection-union test). Among many verdicts, one or more are wrong in more than 5 % of cases.

Source: Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 1987; Efron and Tibshirani, An
    Introduction to the Bootstrap, 1993, chapter 12.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from pipeline.foundation.evaluation.metrics.base import RECALLS, RSUM, STATISTICS, Statistic
from pipeline.foundation.evaluation.retrieval import Floats, Ids
from pipeline.foundation.evaluation.statistics import image_hits, power
from pipeline.foundation.evaluation.statistics.all_pairs import DIGITS
from pipeline.foundation.evaluation.statistics.distributions import quantile, quantiles
from pipeline.foundation.evaluation.statistics.image_hits import FoldHits
from pipeline.foundation.evaluation.statistics.power import MOST_IMAGES, MOST_SEEDS, Needs, least
from pipeline.foundation.evaluation.statistics.significance import (
    Hits,
    difference_over_seeds,
    mean_of_runs,
)
from pipeline.foundation.evaluation.statistics.welch import Runs, welch
from pipeline.foundation.evaluation.statistics.wilson import UNSEEN, Interval, effective
from pipeline.foundation.parts.errors import InputError

# Of the interval that has to be inside the margin, so that each of the two tests has 5 %.
CONFIDENCE = 0.9
ONE_SIDED = (1 + CONFIDENCE) / 2
# In percent points: two recalls cannot differ by more.
LARGEST_MARGIN = 100.0
# Test sets that are drawn from the images; of how many images together at once.
DRAWS = 2000
IMAGES_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Equality:
    """Whether one statistic of two systems is equal within a margin."""

    margin: float  # in percent; for RSUM, of the sum of percentages
    interval: Interval  # the second minus the first
    evidence: "OverImages | OverSeeds"  # what it was tested with

    @property
    def is_shown(self) -> bool:
        """Whether the interval is inside the margin."""
        return -self.margin < self.interval.low and self.interval.high < self.margin

    def needs(self) -> Needs:
        """How many images, or seeds of both, would show the equality of systems that do not differ,
        with a power of 0.8; None for no more than there are, which would have shown it.
        """
        return self.evidence.needs(self.margin)


def check_margin(margin: float) -> None:
    """Check a margin of equality."""
    if not 0 < margin < LARGEST_MARGIN:
        raise InputError(
            f"expected a margin above 0 and below {LARGEST_MARGIN:g} percent points (all systems are within "
            f"{LARGEST_MARGIN:g}), received {margin:g}"
        )


def equality(
    old: Hits, new: Hits, margin: float, seed: int = 0, over_seeds: bool = True
) -> dict[Statistic, Equality]:
    """Test whether two systems are equal within a margin, over what `compare_hits` tests them over.

    Args:
        old: The hits of the first system's runs.
        new: Those of the second one's, of the same queries.
        margin: Of a recall, in percent points; RSUM's is as many times as large as it has recalls,
            for it is their sum.
        seed: Of the draws.
        over_seeds: Whether two systems with several seeds are tested over seeds and images.

    Returns:
        The equality of each of `STATISTICS`, and of further metrics.

    Raises:
        InputError: For a margin that is not above 0 and below 100.
    """
    if over_seeds and len(old) > 1 and len(new) > 1:
        return of_recipes(old, new, margin)
    return of_runs(_minus(old, new), margin, seed)


def of_runs(
    minus: Sequence[FoldHits], margin: float, seed: int = 0, draws: int = DRAWS
) -> dict[Statistic, Equality]:
    """Test whether two runs are equal within a margin, over images.

    Args:
        minus: The second system's hits minus the first one's, each fold.
        margin: Of a recall, in percent points.
        seed: Of the draws.
        draws: How many test sets are drawn.

    Returns:
        The equality of each of `STATISTICS`, and of further metrics. It does not depend on the
        order of images, and turns with its sign where the systems change places.

    Raises:
        InputError: For a margin that is not above 0 and below 100.
    """
    changes = Changes.of(minus)
    low, high = bootstrap_t(minus, changes.unit, seed, draws)
    evidence = [OverImages(changes, at) for at in range(len(changes.most))]
    return _tested(minus, changes, margin, low, high, evidence)


def of_recipes(old: Hits, new: Hits, margin: float) -> dict[Statistic, Equality]:
    """Test whether two recipes are equal within a margin, over seeds and images, by the interval
    of `difference_over_seeds`: a bootstrap over images would not cover seeds.

    Args:
        old: The hits of the first recipe's runs, two or more.
        new: Those of the second one's.
        margin: Of a recall, in percent points.

    Returns:
        The equality of each of `STATISTICS`, and of further metrics.

    Raises:
        InputError: For a margin that is not above 0 and below 100.
    """
    minus = _minus(old, new)
    changes = Changes.of(minus)
    runs = (Runs.of(old), Runs.of(new))
    low, high, _ = difference_over_seeds(*runs, changes.most, CONFIDENCE)
    spreads = power.OverSeeds.of(*runs, changes.most)
    evidence = [OverSeeds(changes, at, spread) for at, spread in enumerate(spreads)]
    return _tested(minus, changes, margin, low, high, evidence)


def _minus(old: Hits, new: Hits) -> list[FoldHits]:
    """The second system's hits minus the first one's, each a mean of its runs."""
    means = zip(mean_of_runs(old), mean_of_runs(new), strict=True)
    return [after.minus(before) for before, after in means]


def _tested(
    minus: Sequence[FoldHits],
    changes: "Changes",
    margin: float,
    low: Floats,
    high: Floats,
    evidence: "Sequence[OverImages | OverSeeds]",
) -> dict[Statistic, Equality]:
    """Whether intervals, widened where few images differ, are inside the margins."""
    check_margin(margin)
    limits = (margin * changes.most / 100).tolist()
    gaps = image_hits.statistics(minus).tolist()
    low, high = changes.wider(low, high)
    found = {}
    for at, name in enumerate(image_hits.names(minus)):
        interval = Interval(gaps[at], float(low[at]), float(high[at]), CONFIDENCE)
        found[name] = Equality(limits[at], interval, evidence[at])
    return found


def bootstrap_t(
    minus: Sequence[FoldHits], unit: Floats, seed: int = 0, draws: int = DRAWS
) -> tuple[Floats, Floats]:
    """The ends of the interval by a bootstrap-t: float64 [M] each.

    Images are drawn whole, so that all statistics have the same ones. Each drawn test set has a
    difference from the measured one over its own standard error. Each standard error has one query
    more, whose part is the unit, or it would be 0 where no image that differs is drawn.
    """
    gaps = image_hits.statistics(minus)
    values, counts, directions = _in_one_direction(image_hits.contributions(minus))
    error = np.sqrt(_variance(values, counts) + unit**2)
    sizes = []
    for drawn in _draws(counts, seed, draws):
        means = drawn @ values / counts.sum()
        sizes.append(means / np.sqrt(_variance(values, drawn) + unit**2))
    ascending = np.sort(np.concatenate(sizes), axis=0)
    beyond = max(1, math.floor((1 - ONE_SIDED) * (draws + 1) + 1e-9))
    lower = -ascending[-beyond] * error
    upper = -ascending[beyond - 1] * error
    ends = np.sort([directions * lower, directions * upper], axis=0)
    half = (upper - lower) / 2
    ends = np.where(directions == 0, [-half, half], ends)
    return gaps + ends[0], gaps + ends[1]


def _variance(values: Floats, counts: Floats) -> Floats:
    """The variance of the mean of values [G, M], each as often as counts [..., G] say."""
    images = counts.sum(-1, keepdims=True)
    means = counts @ values / images
    squares = counts @ values**2 / images
    return np.maximum(squares - means**2, 0) / np.maximum(images - 1, 1)


def _draws(counts: Floats, seed: int, draws: int) -> Iterator[Floats]:
    """Draw as many images as there are, again and again: how often each value was drawn, float64
    [D, G], until D is draws in all.
    """
    generator = np.random.default_rng(seed)
    images = int(counts.sum())
    value_of_image = np.repeat(np.arange(len(counts)), counts.astype(np.int64))
    most = max(1, IMAGES_AT_ONCE // images)
    for start in range(0, draws, most):
        count = min(most, draws - start)
        drawn = value_of_image[generator.integers(0, images, (count, images))]
        drawn += len(counts) * np.arange(count)[:, None]
        of_all = np.bincount(drawn.ravel(), minlength=count * len(counts))
        yield of_all.reshape(count, -1).astype(np.float64)


def _in_one_direction(contributions: Floats) -> tuple[Floats, Floats, Ids]:
    """Take the same one of a difference and its opposite, whichever is given, in any order of
    images. Further metrics, which come after `STATISTICS`, change nothing of these.

    Returns the different values of images [G, M], how many images have each [G], and for each
    statistic -1 if they are the opposite, 0 if both are the same, otherwise 1.
    """
    tables = {}
    keys = {}
    for direction in (1, -1):
        rounded = (direction * contributions).round(DIGITS) + 0.0  # -0.0 becomes 0.0
        rounded = rounded[np.lexsort(rounded.T[::-1])]
        tables[direction] = rounded
        keys[direction] = (rounded[:, : len(STATISTICS)].tobytes(), rounded.tobytes())
    direction = min(keys, key=keys.__getitem__)
    values, counts = np.unique(tables[direction], axis=0, return_counts=True)
    directions = np.full(values.shape[1], direction)
    if keys[1][0] == keys[-1][0]:
        directions[: len(STATISTICS)] = 0
    if keys[1] == keys[-1]:
        directions[:] = 0
    return values, counts.astype(np.float64), directions


@dataclass(frozen=True)
class Changes:
    """How many independent queries would carry as much information as the images, and how many of
    them one of the systems alone finds, for each statistic: float64 [M] each.
    """

    images: int
    most: Floats  # the largest value of each statistic
    worth: Floats  # their number, of all queries
    unit: Floats  # the part of one in the statistic
    better: Floats  # those that the second alone finds
    worse: Floats  # those that the first alone finds

    @classmethod
    def of(cls, minus: Sequence[FoldHits]) -> "Changes":
        """Count them as `with_unseen` does."""
        directions = np.any([fold.queries.sum(0) > 0 for fold in minus], axis=0)
        most = image_hits.most(minus)
        # Of one direction, RSUM is the sum of its three recalls.
        most[STATISTICS.index(RSUM)] = 100.0 * len(RECALLS) * directions.sum()
        values = image_hits.parts(minus) / most
        squares = ((image_hits.contributions(minus) / most) ** 2).sum(0)
        better = np.maximum(values, 0).mean(0)
        worse = np.maximum(-values, 0).mean(0)
        variance = better + worse - (better - worse) ** 2
        worth = effective(variance, squares, len(values))
        return cls(len(values), most, worth, most / worth, worth * better, worth * worse)

    def wider(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Widen intervals where few images differ.

        Where few images differ, test sets that are drawn from them say little of others. So each
        end is at least as far as that of Clopper and Pearson for counts of rare queries: as if one
        more had changed in its direction, with the skewness of such counts. Where none of N queries
        changed, it is at 3.2 / N.

        Source: Clopper and Pearson, Biometrika 1934; the quantile: Cornish and Fisher, Revue de
            l'Institut International de Statistique 1938.
        """
        t = quantile(max(self.images - 1, 1), ONE_SIDED)
        gap = self.better - self.worse
        changed = self.better + self.worse + 1
        half = t * np.sqrt(changed)
        upper = gap + 1 + half + (t * t - 1) / 3 * (gap + 1) / changed
        lower = gap - 1 - half + (t * t - 1) / 3 * (gap - 1) / changed
        wide_low = np.minimum(low, self.unit * lower)
        wide_high = np.maximum(high, self.unit * upper)
        ends = np.clip([wide_low, wide_high], -self.most, self.most).round(DIGITS)
        return ends[0], ends[1]

    def changed(self, at: int, images: int) -> float:
        """How many queries would change on so many images, if a tenth of one more than was seen did
        here.
        """
        here = float(self.better[at] + self.worse[at]) + UNSEEN
        return here * images / self.images

    def half(self, at: int, images: int) -> float:
        """How far an interval around 0 would reach on so many images, as `wider` has it."""
        z = NormalDist().inv_cdf(ONE_SIDED)
        changed = self.changed(at, images) + 1
        queries = 1 + z * math.sqrt(changed) + (z * z - 1) / 3 / changed
        return queries * self.unit_on(at, images)

    def unit_on(self, at: int, images: int) -> float:
        """The unit on so many images."""
        return float(self.unit[at]) * self.images / images


@dataclass(frozen=True)
class OverImages:
    """What equality needs of two runs that do not differ, if as many of their queries change."""

    changes: Changes
    at: int

    def needs(self, margin: float) -> Needs:
        """The number of images, by the normal distribution."""

        def power_of(images: int) -> float:
            changed = self.changes.changed(self.at, images)
            error = math.sqrt(changed) * self.changes.unit_on(self.at, images)
            return _chance_within((margin - self.changes.half(self.at, images)) / error)

        images = least(power_of, 2, MOST_IMAGES)
        return {"images": _more_than(self.changes.images, images)}


@dataclass(frozen=True)
class OverSeeds:
    """What equality needs of two recipes that do not differ, if their seeds spread as much."""

    changes: Changes
    at: int
    spread: power.OverSeeds

    def needs(self, margin: float) -> Needs:
        """The number of seeds of each recipe, and the number of images with these seeds, that would
        each be enough.
        """

        def power_of_seeds(seeds: int) -> float:
            return self._power(np.array([seeds, seeds]), self.spread.images, margin)

        def power_of_images(images: int) -> float:
            return self._power(self.spread.seeds, images, margin)

        seeds = least(power_of_seeds, 2, MOST_SEEDS)
        images = least(power_of_images, 2, MOST_IMAGES)
        return {
            "seeds": _more_than(int(self.spread.seeds.min()), seeds),
            "images": _more_than(self.spread.images, images),
        }

    def _power(self, seeds: Ids, images: int, margin: float) -> float:
        parts = self.spread.parts(seeds, images)[:, None]
        error, freedom, _ = welch(np.zeros(1), parts, [images - 1, *(seeds - 1)])
        half = float(quantiles(freedom, ONE_SIDED)[0] * error[0])
        half = max(half, self.changes.half(self.at, images))
        return _chance_within((margin - half) / float(error[0]))


def _more_than(measured: int, enough: int | None) -> int | None:
    """How many images or seeds would be enough; None if as many were measured, and were not."""
    if enough is None or enough <= measured:
        return None
    return enough


def _chance_within(size: float) -> float:
    """The chance that a normal value is not farther from 0."""
    return 2 * NormalDist().cdf(size) - 1
