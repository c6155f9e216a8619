"""Wilson's interval of a share, for images that are drawn with all their captions."""

from dataclasses import dataclass

import numpy as np

from pipeline.foundation.evaluation.retrieval import Floats
from pipeline.foundation.evaluation.statistics.distributions import quantile
from pipeline.foundation.parts.errors import InputError

# Weight of an imaginary extra image whose captions all hit or all miss. Without variation over
# images, the correlation of captions of one image cannot be estimated; this keeps it above 0.
# Chosen by `python -m benchmarks.coverage`.
UNSEEN = 0.1


@dataclass(frozen=True)
class Interval:
    """A number with its confidence interval."""

    value: float  # as printed: shares in percent, ranks as they are, rsum the sum of percentages
    low: float  # the interval's lower end, in the same unit
    high: float  # the interval's upper end, in the same unit
    confidence: float  # the share of test sets whose interval holds the true value, 0 to 1


def check_confidence(confidence: float) -> None:
    """Check a confidence."""
    if not 0 < confidence < 1:
        raise InputError(f"expected a confidence between 0 and 1, received {confidence}")


def of_mean_share(share: float, apart: Floats, confidence: float) -> tuple[float, float]:
    """Compute Wilson's interval for one mean of values from 0 to 1.

    apart: by how much each image's value differs from it.
    """
    squares = np.array([(apart**2).sum()])
    low, high = wilson(np.array([share]), squares, len(apart), confidence)
    return float(low[0]), float(high[0])


def wilson(share: Floats, squares: Floats, images: int, confidence: float) -> tuple[Floats, Floats]:
    """Compute Wilson's interval for means of values from 0 to 1, one value for each image."""
    share = np.clip(share, 0, 1)
    worth = effective(share * (1 - share), squares, images)
    t = quantile(max(images - 1, 1), (1 + confidence) / 2)
    shrinkage = 1 + t * t / worth
    middle = (share + t * t / 2 / worth) / shrinkage
    variance = share * (1 - share) / worth + (t / worth) ** 2 / 4
    half = t * np.sqrt(variance) / shrinkage
    # At 0 and 1 one end equals the share up to rounding; the interval must always hold the measured
    # value.
    low = np.minimum(middle - half, share)
    high = np.maximum(middle + half, share)
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def effective(variance: Floats, squares: Floats, images: int) -> Floats:
    """How many independent queries, of this variance each, carry as much information as images
    whose values differ from their mean by these squares in all.
    """
    spread = squares * images / max(images - 1, 1)
    return images * (images * variance + UNSEEN) / (spread + UNSEEN)
