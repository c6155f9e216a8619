"""Whether two single runs differ on the same queries: bootstrap over images, and random swaps of results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.errors import InputError
from pipeline.retrieval.metrics import RECALLS
from pipeline.retrieval.ranks import Floats
from pipeline.statistics.per_image import FoldHits, mean, statistics

# Images of resampled test sets in memory at once: 16 bytes each for weights, and some tens for results.
DRAWN_AT_ONCE = 2_000_000


def difference(folds: Sequence[FoldHits], samples: int, confidence: float, seed: int) -> tuple[Floats, Floats, Floats]:
    """Estimate the difference of two runs for other images; variation over training seeds is not covered.

    The interval comes from the percentile bootstrap: within each fold, images are drawn with replacement, each with its
    captions as queries. The pool of candidates is fixed. p comes from the paired randomisation test: if the systems
    were equally good, swapping their results on any image would change nothing, so p = (1 + number of random swaps
    whose difference is at least as large in size) / (1 + samples).

    Args:
        folds: The second run's hits minus the first's.
        samples: How many test sets, and how many swaps, to draw.
        confidence: Of the interval, between 0 and 1.
        seed: Of the random draws.

    Returns:
        The lower and upper ends of the difference's interval, in percent, and the two-sided p: float64 [7] each.

    Raises:
        InputError: For fewer than one sample.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13; Smucker, Allan and Carterette,
        CIKM
        2007.
    """
    if samples < 1:
        raise InputError(f"expected samples from 1 up, received {samples}")
    generator = np.random.default_rng(seed)
    ends = [(1 - confidence) / 2, (1 + confidence) / 2]
    low, high = np.quantile(_resample(folds, samples, generator), ends, axis=0)
    swapped = np.abs(_swap(folds, samples, generator))
    # The measured difference is itself one of the swaps; the tolerance keeps equal differences equal after rounding.
    p = (1 + (swapped >= np.abs(statistics(folds)) - 1e-9).sum(0)) / (1 + samples)
    return low, high, p


def _resample(folds: Sequence[FoldHits], samples: int, generator: np.random.Generator) -> Floats:
    """Compute the statistics [samples, 7] of test sets drawn with replacement."""
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
    """Compute the differences [samples, 7] after swapping the two systems' results on about half of the images."""
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
    """Split the samples into batches, so that memory stays bounded for any number of images."""
    most = max(1, DRAWN_AT_ONCE // max(len(fold.hits) for fold in folds))
    return [min(most, samples - start) for start in range(0, samples, most)]
