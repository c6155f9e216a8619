"""Two single runs on the same queries: other test sets, and swaps of the two, drawn at random."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.errors import InputError
from pipeline.retrieval.metrics import RECALLS
from pipeline.retrieval.ranks import Floats
from pipeline.statistics.per_image import FoldHits, mean, statistics

# Images of resampled test sets handled at once: 16 bytes each, and some tens of bytes of what follows from them.
DRAWN_AT_ONCE = 2_000_000


def difference(folds: Sequence[FoldHits], samples: int, confidence: float, seed: int) -> tuple[Floats, Floats, Floats]:
    """Whether two runs differ, for other images; of other seeds it says nothing.

    The interval is that of the percentile bootstrap (Efron and Tibshirani, 1993, chapter 13): images are drawn with
    replacement, within each fold, together with their captions, as queries; the pool of candidates stays as it was.
    p is that of the paired randomisation test (Smucker, Allan and Carterette, CIKM 2007): were the systems alike, each
    image's results could as well have been swapped between them; p = (1 + number of random swaps with a difference at
    least as large in size) / (1 + samples).

    Args:
        folds: the second run's hits minus the first's.
        samples: test sets, and swaps, to draw.
        confidence: between 0 and 1.
        seed: of the drawing.

    Returns:
        The ends of the difference's interval, and p, two-sided: float64 [7] each.

    Raises:
        InputError: for fewer than one sample.
    """
    if samples < 1:
        raise InputError(f"expected samples from 1 up, received {samples}")
    generator = np.random.default_rng(seed)
    ends = [(1 - confidence) / 2, (1 + confidence) / 2]
    low, high = np.quantile(_resample(folds, samples, generator), ends, axis=0)
    swapped = np.abs(_swap(folds, samples, generator))
    # The measured difference is itself one of the swaps; a little slack keeps its equals equal after rounding.
    p = (1 + (swapped >= np.abs(statistics(folds)) - 1e-9).sum(0)) / (1 + samples)
    return low, high, p


def _resample(folds: Sequence[FoldHits], samples: int, generator: np.random.Generator) -> Floats:
    """The statistics [samples, 7] of test sets drawn with replacement."""
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
    """The differences [samples, 7] after swapping the two systems' results of about half of the images."""
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
    """How many resampled test sets to handle at once, so that memory stays bounded for any number of images."""
    most = max(1, DRAWN_AT_ONCE // max(len(fold.hits) for fold in folds))
    return [min(most, samples - start) for start in range(0, samples, most)]
