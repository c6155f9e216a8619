"""95 % intervals of metrics, over test sets of other images, each drawn with its captions."""

from collections.abc import Sequence

import numpy as np

from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.evaluation.retrieval.ranks import Floats
from pipeline.evaluation.statistics.intervals import wilson

CONFIDENCE = 0.95
DRAWN_AT_ONCE = 4_000_000  # queries of resampled test sets


def contributions(values: Sequence[Floats], owners: Sequence[Ids]) -> Floats:
    """By how much each image of all folds lies above or below a mean over queries."""
    return joint([(values, owners)])


def joint(parts: Sequence[tuple[Sequence[Floats], Sequence[Ids]]]) -> Floats:
    """Compute the same for the sum of several means over queries of the same images."""
    folds = []
    for fold in range(len(parts[0][0])):
        images = 1 + max(int(owners[fold].max()) for _, owners in parts)
        asked, total = np.zeros(images, bool), np.zeros(images)
        counts, sums = [], []
        for values, owners in parts:
            counts.append(np.bincount(owners[fold], minlength=images))
            sums.append(np.bincount(owners[fold], values[fold], minlength=images))
            asked |= counts[-1] > 0
        for count, found in zip(counts, sums, strict=True):
            total += (found - found.sum() / count.sum() * count) / count[asked].mean()
        folds.append(total[asked])
    images = sum(map(len, folds))
    # A number is the mean over folds: an image of a smaller fold has more to say in it.
    return np.concatenate([each * (images / (len(folds) * len(each))) for each in folds])


def of_share(value: float, each: Floats) -> tuple[float, float]:
    """Compute Wilson's interval of a mean of values from 0 to 1."""
    low, high = wilson(np.array([value]), np.array([(each**2).sum()]), len(each), CONFIDENCE)
    return float(low[0]), float(high[0])


def of_mean(value: float, each: Floats, least: float) -> tuple[float, float]:
    """Compute Student's interval of a mean of any values."""
    from scipy.special import stdtrit  # a fifth of a second to import

    freedom = max(len(each) - 1, 1)
    half = float(stdtrit(freedom, (1 + CONFIDENCE) / 2) * np.sqrt((each**2).sum() / (freedom * len(each))))
    return max(least, value - half), value + half


def of_median(values: Sequence[Floats], owners: Sequence[Ids], resamples: int, seed: int) -> tuple[float, float]:
    """Compute the percentile bootstrap's interval of a median over queries, with images drawn within each fold.

    Source:
        Efron and Tibshirani, 1993, chapter 13.
    """
    generator = np.random.default_rng(seed)
    drawn = np.mean([_medians(*fold, resamples, generator) for fold in zip(values, owners, strict=True)], axis=0)
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def _medians(values: Floats, owner: Ids, resamples: int, generator: np.random.Generator) -> Floats:
    """The medians of so many resampled test sets."""
    images, image = np.unique(owner, return_inverse=True)
    order = np.argsort(values, kind="stable")
    values, image = values[order], image[order]
    found = []
    at_once = max(1, DRAWN_AT_ONCE // len(values))
    for start in range(0, resamples, at_once):
        count = min(at_once, resamples - start)
        weights = generator.multinomial(len(images), np.full(len(images), 1 / len(images)), size=count)
        total = np.cumsum(weights[:, image], axis=1)
        # The two middle ones of the queries that were drawn, in order.
        for middle in zip(total, total[:, -1], strict=True):
            cumulated, size = middle
            places = np.searchsorted(cumulated, [(size + 1) // 2, size // 2 + 1])
            found.append(values[places].mean())
    return np.array(found)
