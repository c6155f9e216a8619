"""The interval of every recall and of RSUM, over test sets of other images; it holds near 0 and 100 % too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.errors import InputError
from pipeline.retrieval.metrics import RECALLS, Metrics
from pipeline.retrieval.ranks import Floats
from pipeline.statistics.per_image import STATISTICS, contributions, gather, statistics

MOST = np.array([100.0] * 6 + [600.0])
"""The largest value of each statistic."""

UNSEEN = 0.1
"""Images added, in thought, whose captions all miss or all hit together: where no image, or one, shows how far
captions of one image go together, this does. Chosen by `python -m benchmarks.coverage`."""


@dataclass(frozen=True)
class Interval:
    """A number with the interval that holds it.

    Attributes:
        value: as measured, in percent (points of a sum for rsum).
        low, high: the interval's ends, in the same unit.
        confidence: in how many of many test sets such an interval holds the true value, 0 to 1.
    """

    value: float
    low: float
    high: float
    confidence: float


def intervals(metrics: Metrics, confidence: float = 0.95) -> dict[str, Interval]:
    """Wilson's score interval of every recall and of RSUM, for images drawn with all their captions.

    The pool of candidates stays as it is. Each image's share of hits is a value from 0 to 1; its variance over images
    says how many independent queries the test set is worth, and Wilson's interval for so many follows, with Student's
    t for the normal quantile. RSUM is treated as 600 times such a share. `docs/measured.md` shows how often these
    intervals hold the true value.

    Args:
        metrics: what `evaluate` measured.
        confidence: between 0 and 1.

    Returns:
        An interval for each name in `STATISTICS`.

    Raises:
        InputError: for another confidence.

    Source: Wilson, JASA 1927; effective sample sizes for clusters: Korn and Graubard, Survey Methodology 1998.
    """
    check_confidence(confidence)
    folds = gather(metrics)
    measured, each = statistics(folds), contributions(folds) / MOST
    low, high = wilson(measured / MOST, (each**2).sum(0), len(each), confidence)
    return {name: Interval(float(measured[at]), float(MOST[at] * low[at]), float(MOST[at] * high[at]), confidence)
            for at, name in enumerate(STATISTICS)}


def interval(metrics: Metrics) -> dict[str, Any]:
    """The 95 % intervals as plain JSON values.

    Args:
        metrics: what `evaluate` measured.

    Returns:
        [low, high] in percent for each recall, nested as `Metrics.as_dict` is, and for rsum.
    """
    each = {name: [found.low, found.high] for name, found in intervals(metrics).items()}
    ways = {way: {f"r{k}": each[f"{way}_r{k}"] for k in RECALLS} for way in ("i2t", "t2i")}
    return {**ways, "rsum": each["rsum"]}


def check_confidence(confidence: float) -> None:
    """Raises InputError unless the confidence lies between 0 and 1."""
    if not 0 < confidence < 1:
        raise InputError(f"expected a confidence between 0 and 1, received {confidence}")


def wilson(share: Floats, squares: Floats, images: int, confidence: float) -> tuple[Floats, Floats]:
    """Wilson's interval for means of values from 0 to 1, one value an image.

    Args:
        share: float64 [K], the means.
        squares: float64 [K], the sums of the squared deviations of the images' values from them.
        images: how many.
        confidence: between 0 and 1.

    Returns:
        The ends: float64 [K] each, from 0 to 1.
    """
    from scipy.special import stdtrit  # a fifth of a second to import

    share, freedom = np.clip(share, 0, 1), max(images - 1, 1)
    spread = squares * images / freedom
    worth = images * (images * share * (1 - share) + UNSEEN) / (spread + UNSEEN)
    t = float(stdtrit(freedom, (1 + confidence) / 2))
    middle = (share + t * t / 2 / worth) / (1 + t * t / worth)
    half = t * np.sqrt(share * (1 - share) / worth + (t / worth) ** 2 / 4) / (1 + t * t / worth)
    # At 0 and 1 the outer end is the share itself, but for rounding; the value is always inside.
    return np.clip(np.minimum(middle - half, share), 0, 1), np.clip(np.maximum(middle + half, share), 0, 1)
