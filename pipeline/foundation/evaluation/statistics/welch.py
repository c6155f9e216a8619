"""Welch's test of two recipes, with the variance over images added to those over seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.foundation.evaluation.retrieval import Floats
from pipeline.foundation.evaluation.statistics import image_hits
from pipeline.foundation.evaluation.statistics.distributions import chance_beyond
from pipeline.foundation.evaluation.statistics.image_hits import FoldHits
from pipeline.foundation.evaluation.statistics.wilson import UNSEEN


@dataclass(frozen=True)
class Runs:
    """One recipe's runs on one test set."""

    values: Floats  # float64 [S, K], each run's statistics
    contributions: Floats  # float64 [S, N, K], how far each image lies above or below them

    @classmethod
    def of(cls, hits: Sequence[Sequence[FoldHits]]) -> "Runs":
        """Measure them from the hits of each run, by fold."""
        return cls(
            np.array([image_hits.statistics(run) for run in hits]),
            np.array([image_hits.contributions(run) for run in hits]),
        )

    def variance(self) -> Floats:
        """Compute the variance of the mean over seeds, for other seeds on the same images."""
        return np.asarray(self.values.var(0, ddof=1) / len(self.values))

    def by_image_alone(self) -> Floats:
        """Compute the part of the mean's variance over images that is specific to each seed.

        `variance` already includes this part: runs that fail on different images also differ in
        their values.
        """
        seeds, images, _ = self.contributions.shape
        apart = self.contributions - self.contributions.mean(0)
        freedom = (seeds - 1) * seeds * max(images - 1, 1) * images
        return np.asarray((apart**2).sum((0, 1)) / freedom)


def variances(first: Runs, second: Runs, most: Floats) -> Floats:
    """The variance of the difference: over images that all seeds share, and of each recipe over
    seeds, [3, K].
    """
    images = first.contributions.shape[1]
    by_image = second.contributions.mean(0) - first.contributions.mean(0)
    squares = (by_image**2).sum(0) + UNSEEN * most**2
    whole = squares / (images * max(images - 1, 1))
    alone_subtracted = whole - first.by_image_alone() - second.by_image_alone()
    shared = np.maximum(alone_subtracted, 0)
    of_first = first.variance()
    of_second = second.variance()
    # Seeds whose totals are equal though their images differ would leave no variance at all.
    of_images = np.where(shared + (of_first + of_second) > 0, shared, whole)
    return np.stack([of_images, of_first, of_second])


def welch(
    difference: Floats, parts: Floats, freedoms: Sequence[float]
) -> tuple[Floats, Floats, Floats]:
    """The standard error, its degrees of freedom and the two-sided p of differences.

    parts: [M, ...], those of their variance, whose sum is above 0. freedoms: [M], degrees of the
        parts. Source: Satterthwaite, Biometrics Bulletin 1946.
    """
    whole = parts.sum(0)
    weighted = [part**2 / freedom for part, freedom in zip(parts, freedoms, strict=True)]
    freedom_of_whole = whole**2 / sum(weighted)
    error = np.sqrt(whole)
    return error, freedom_of_whole, chance_beyond(freedom_of_whole, difference / error)
