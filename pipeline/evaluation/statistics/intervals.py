"""Confidence intervals of each recall and of RSUM for other images; they also hold near 0 % and 100 %."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.evaluation.retrieval.metrics import RECALLS, Metrics
from pipeline.evaluation.retrieval.ranks import Floats
from pipeline.evaluation.statistics.per_image import STATISTICS, contributions, gather, statistics
from pipeline.parts.errors import InputError

MOST = np.array([100.0] * 6 + [600.0])
"""The largest value of each statistic."""

UNSEEN = 0.1
"""Weight of an imaginary extra image whose captions all hit or all miss. Without variation over images, the correlation
of captions of one image cannot be estimated; this keeps it above 0. Chosen by `python -m benchmarks.coverage`."""


@dataclass(frozen=True)
class Interval:
    """A number with its confidence interval."""

    value: float  # as measured, in percent (for rsum, the sum of percentages)
    low: float  # the interval's lower end, in the same unit
    high: float  # the interval's upper end, in the same unit
    confidence: float  # the share of test sets whose interval holds the true value, 0 to 1


def intervals(metrics: Metrics, confidence: float = 0.95) -> dict[str, Interval]:
    """Compute Wilson's score interval of each recall and of RSUM, for images drawn with all their captions.

    The pool of candidates is fixed. Each image's share of hits is a value from 0 to 1. Its variance over images gives
    the number of independent queries that carry as much information as the test set. Wilson's interval is computed for
    that number, with Student's t in place of the normal quantile. RSUM divided by 600 is treated as such a share.
    `docs/measured/intervals.md` shows how often these intervals hold the true value.

    Args:
        metrics: From `evaluate`.
        confidence: Between 0 and 1, both excluded.

    Returns:
        An interval for each name in `STATISTICS`.

    Raises:
        InputError: For a confidence outside these bounds.

    Source: Wilson, JASA 1927; effective sample sizes for clusters: Korn and Graubard, Survey Methodology 1998.
    """
    check_confidence(confidence)
    folds = gather(metrics)
    measured, each = statistics(folds), contributions(folds) / MOST
    low, high = wilson(measured / MOST, (each**2).sum(0), len(each), confidence)
    return {name: Interval(float(measured[at]), float(MOST[at] * low[at]), float(MOST[at] * high[at]), confidence)
            for at, name in enumerate(STATISTICS)}


def interval(metrics: Metrics) -> dict[str, Any]:
    """Compute the 95 % intervals as plain JSON values.

    Args:
        metrics: From `evaluate`.

    Returns:
        [low, high] in percent for each recall, nested as `Metrics.as_dict` is, and for rsum.
    """
    each = {name: [found.low, found.high] for name, found in intervals(metrics).items()}
    ways = {way: {f"r{k}": each[f"{way}_r{k}"] for k in RECALLS} for way in ("i2t", "t2i")}
    return {**ways, "rsum": each["rsum"]}


def check_confidence(confidence: float) -> None:
    """Check a confidence."""
    if not 0 < confidence < 1:
        raise InputError(f"expected a confidence between 0 and 1, received {confidence}")


def wilson(share: Floats, squares: Floats, images: int, confidence: float) -> tuple[Floats, Floats]:
    """Compute Wilson's interval for means of values from 0 to 1, one value for each image."""
    from scipy.special import stdtrit  # takes 0.2 s to import

    share, freedom = np.clip(share, 0, 1), max(images - 1, 1)
    spread = squares * images / freedom
    worth = images * (images * share * (1 - share) + UNSEEN) / (spread + UNSEEN)
    t = float(stdtrit(freedom, (1 + confidence) / 2))
    middle = (share + t * t / 2 / worth) / (1 + t * t / worth)
    half = t * np.sqrt(share * (1 - share) / worth + (t / worth) ** 2 / 4) / (1 + t * t / worth)
    # At 0 and 1 one end equals the share up to rounding; the interval must always hold the measured value.
    return np.clip(np.minimum(middle - half, share), 0, 1), np.clip(np.maximum(middle + half, share), 0, 1)
