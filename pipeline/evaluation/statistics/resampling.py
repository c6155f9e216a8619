"""Whether two single runs differ on the same queries: random swaps of their results, image by image."""

import math
from collections.abc import Sequence

import numpy as np

from pipeline.evaluation.retrieval.metrics import RECALLS
from pipeline.evaluation.retrieval.ranks import Floats
from pipeline.evaluation.statistics.per_image import FoldHits, mean, statistics
from pipeline.parts.errors import InputError

# Images of swapped test sets in memory at once: 8 bytes each for signs, and some tens for results.
DRAWN_AT_ONCE = 2_000_000


def difference(folds: Sequence[FoldHits], samples: int, most: Floats, confidence: float, seed: int
               ) -> tuple[Floats, Floats, Floats]:
    """Estimate the difference of two runs for other images; variation over training seeds is not covered.

    p comes from the paired randomisation test: if the systems were equally good, swapping their results on any image
    would change nothing, so p = (1 + number of random swaps whose difference is at least as large in size) /
    (1 + samples). The interval holds the differences that the same swaps do not reject, after they are taken off each
    image: it leaves out 0 where p is below 1 - confidence, and nowhere else. With few images it reaches to `most`. The
    pool of candidates is fixed.

    Source: Smucker, Allan and Carterette, CIKM 2007; intervals: Edgington and Onghena, Randomization Tests, 2007.
    """
    if samples < 1:
        raise InputError(f"expected samples from 1 up, received {samples}")
    found = statistics(folds)
    swapped, shares = _swap(folds, samples, np.random.default_rng(seed))
    # The measured difference is itself one of the swaps; the tolerance keeps equal differences equal after rounding.
    p = (1 + (np.abs(swapped) >= np.abs(found) - 1e-9).sum(0)) / (1 + samples)
    # A swap does not reject d where |swapped - d shares| >= |found - d|: from one of these ends to the other.
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack([(found - swapped) / (1 - shares), (found + swapped) / (1 + shares)])
    ends = np.where(1 - np.abs(shares) < 1e-9, [[-most], [most]], ends)  # all images swapped, or none: it rejects none
    wanted = math.ceil((1 - confidence) * (1 + samples) - 1 - 1e-9)
    if wanted < 1:
        return -most, most, p
    low, high = np.sort(ends.min(0), axis=0)[wanted - 1], np.sort(ends.max(0), axis=0)[-wanted]
    return np.clip(low, -most, most), np.clip(high, -most, most), p


def _swap(folds: Sequence[FoldHits], samples: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Swap the two systems' results on about half of the images.

    Returns the differences [samples, 7] after it, and of a difference that all images have in common what is left.
    """
    swapped, shares = [], []
    for count in _batches(folds, samples):
        recalls, common = [], []
        for fold in folds:
            signs = generator.integers(0, 2, size=(count, len(fold.hits))) * 2.0 - 1
            queries = fold.queries.sum(0)
            recalls.append(100 * (signs @ fold.hits) / np.repeat(queries, len(RECALLS)))
            common.append(np.repeat(signs @ fold.queries / queries, len(RECALLS), axis=1))
        swapped.append(mean(recalls))
        shares.append(mean(common) / [*[1] * 6, 6])
    return np.concatenate(swapped), np.concatenate(shares)


def _batches(folds: Sequence[FoldHits], samples: int) -> list[int]:
    """Split the samples into batches, so that memory stays bounded for any number of images."""
    most = max(1, DRAWN_AT_ONCE // max(len(fold.hits) for fold in folds))
    return [min(most, samples - start) for start in range(0, samples, most)]
