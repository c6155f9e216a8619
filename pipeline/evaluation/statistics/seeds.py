"""Training seeds: how far runs of one recipe spread, and whether two recipes differ by more than that.

Seeds of two recipes are taken as independent: the same seed in both means the same order of batches, no more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from pipeline.evaluation.retrieval.metrics import Metrics
from pipeline.evaluation.retrieval.ranks import Floats
from pipeline.evaluation.statistics.intervals import UNSEEN
from pipeline.evaluation.statistics.per_image import STATISTICS
from pipeline.parts.errors import InputError


@dataclass(frozen=True)
class Spread:
    """One statistic over several seeds, in percent."""

    seeds: int  # how many runs there are
    mean: float  # their mean
    deviation: float  # sample standard deviation (divided by seeds - 1)
    smallest: float  # the smallest value
    largest: float  # the largest value


@dataclass(frozen=True)
class Runs:
    """One recipe's runs on one test set."""

    values: Floats  # float64 [S, K], each run's statistics
    contributions: Floats  # float64 [S, N, K], how far each image lies above or below them

    def variance(self) -> Floats:
        """Compute the variance of the mean over seeds, for other seeds on the same images."""
        return np.asarray(self.values.var(0, ddof=1) / len(self.values))

    def by_image_alone(self) -> Floats:
        """Compute the part of the mean's variance over images that is specific to each seed.

        `variance` already includes this part: runs that fail on different images also differ in their values.
        """
        seeds, images, _ = self.contributions.shape
        own = self.contributions - self.contributions.mean(0)
        return np.asarray((own**2).sum((0, 1)) / ((seeds - 1) * seeds * max(images - 1, 1) * images))


def difference(first: Runs, second: Runs, most: Floats, confidence: float) -> tuple[Floats, Floats, Floats]:
    """Estimate the difference of two recipes' means, for other seeds and other images at once.

    The variance of the difference has three parts: that of each recipe's mean over seeds, and the variance over images
    that all seeds share. Its degrees of freedom follow from those of the parts (Satterthwaite). Without the third part
    this is Welch's t test. Two-way bootstraps reject too often with as few seeds as are usual.
    `docs/measured/intervals.md` shows how often two equal recipes are reported as different: in 4 to 7 of 100 cases.

    Source: Satterthwaite, Biometrics Bulletin 1946.
    """
    images = first.contributions.shape[1]
    found = second.values.mean(0) - first.values.mean(0)
    by_image = second.contributions.mean(0) - first.contributions.mean(0)
    shared = ((by_image**2).sum(0) + UNSEEN * most**2) / (images * max(images - 1, 1))
    parts = [np.maximum(shared - first.by_image_alone() - second.by_image_alone(), 0),
             first.variance(), second.variance()]
    # Seeds whose totals are equal though their images differ would leave no variance at all.
    parts[0] = np.where(np.sum(parts, axis=0) > 0, parts[0], shared)
    freedoms = [max(images - 1, 1), len(first.values) - 1, len(second.values) - 1]
    whole = np.sum(parts, axis=0)
    freedom = whole**2 / sum(part**2 / each for part, each in zip(parts, freedoms, strict=True))
    error = np.sqrt(whole)
    half = stdtrit(freedom, (1 + confidence) / 2) * error
    return found - half, found + half, np.asarray(2 * stdtr(freedom, -np.abs(found) / error))


def over_seeds(runs: Sequence[Metrics]) -> dict[str, Spread]:
    """Compute mean and spread of runs that differ in their seed.

    Args:
        runs: Two or more.

    Returns:
        A spread for each name in `STATISTICS`.

    Raises:
        InputError: For fewer than two runs, or if they were not measured by one protocol on pools of one size.
    """
    if len(runs) < 2:
        raise InputError(f"a spread over seeds needs at least two runs, received {len(runs)}")
    kinds = {(run.protocol, run.ties, run.images, run.captions) for run in runs}
    if len(kinds) > 1:
        raise InputError(f"runs differ in protocol, ties, images or captions: {sorted(kinds)}")
    values = np.array([[*run.i2t.recalls.values(), *run.t2i.recalls.values(), run.rsum] for run in runs])
    columns = (values.mean(0), values.std(0, ddof=1), values.min(0), values.max(0))
    return {
        name: Spread(len(runs), *(float(column[each]) for column in columns)) for each, name in enumerate(STATISTICS)
    }
