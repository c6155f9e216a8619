"""Confidence intervals of each recall and of RSUM for other images; they also hold near 0 % and 100
%.

The unit is the image with all its captions, because captions of one image are not independent of
each other. Hits are summed by image; `FoldHits` gives recalls for any weights of the images, and
each image's deviation from the recalls. Captions in several languages make a pool of each language,
and the mean over languages has an interval of its own.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.foundation.evaluation.metrics.base import STATISTICS, Statistic, nested
from pipeline.foundation.evaluation.metrics.standard import Metrics
from pipeline.foundation.evaluation.retrieval import Ids, Relevance
from pipeline.foundation.evaluation.retrieval.relevance import as_relevance
from pipeline.foundation.evaluation.statistics.image_hits import (
    MOST,
    FoldHits,
    ImageHits,
    contributions,
    drawn,
    gather,
    statistics,
)
from pipeline.foundation.evaluation.statistics.wilson import (
    Interval,
    check_confidence,
    of_mean_share,
    wilson,
)
from pipeline.foundation.parts.errors import InputError

Languages = npt.NDArray[np.str_]


def intervals(metrics: Metrics, confidence: float = 0.95) -> dict[Statistic, Interval]:
    """Compute Wilson's score interval of each recall and of RSUM, for images drawn with all their
    captions.

    The pool of candidates is fixed. Each image's share of hits is a value from 0 to 1. Its variance
    over images gives the number of independent queries that carry as much information as the test
    set. Wilson's interval is computed for that number, with Student's t instead of the normal
    quantile. RSUM divided by 600 is treated as such a share. `docs/measured.md` shows how
    often these intervals hold the true value.

    Args:
        metrics: From `evaluate`.
        confidence: Between 0 and 1, both excluded.

    Returns:
        An interval for each of `STATISTICS` that is known.

    Raises:
        InputError: For a confidence outside these bounds.

    Source: Wilson, JASA 1927; effective sample sizes for clusters: Korn and Graubard, Survey
        Methodology 1998.
    """
    check_confidence(confidence)
    known = _of_runs([gather(metrics)], confidence)
    return {name: of for name, of in known.items() if not math.isnan(metrics[name])}


def of_mean(runs: Sequence[ImageHits]) -> dict[Statistic, Interval]:
    """The means of each recall and of RSUM over runs of one system, such as seeds, with their 95 %
    intervals over images as those of one run; {} where the runs have other queries.
    """
    if len({run.queries for run in runs}) != 1:
        return {}
    return _of_runs([run.folds for run in runs], 0.95)


def _of_runs(runs: Sequence[Sequence[FoldHits]], confidence: float) -> dict[Statistic, Interval]:
    measured = np.mean([statistics(folds) for folds in runs], axis=0)
    apart = np.mean([contributions(folds) for folds in runs], axis=0) / MOST
    low, high = wilson(measured / MOST, (apart**2).sum(0), len(apart), confidence)
    low = MOST * low
    high = MOST * high
    known = {}
    for at, name in enumerate(STATISTICS):
        known[name] = Interval(float(measured[at]), float(low[at]), float(high[at]), confidence)
    return known


def interval(metrics: Metrics) -> dict[str, Any]:
    """The 95 % intervals of metrics as JSON: [low, high] in percent for each recall and RSUM, as
    `Metrics.as_dict`.
    """
    ends: dict[Statistic, list[float] | None] = dict.fromkeys(STATISTICS)
    for name, known in intervals(metrics).items():
        ends[name] = [known.low, known.high]
    return nested(ends)


def divide(
    truth: object, shape: tuple[int, int], languages: Languages
) -> dict[str, tuple[Ids, Ids]]:
    """Find the images and captions of each language with a right answer: its captions, and the
    images that have one.
    """
    if languages.shape != shape[1:]:
        raise InputError(
            f"languages: expected one for each of {shape[1]} captions, received {list(languages.shape)}"
        )
    relevance = as_relevance(truth, shape)
    parts = {}
    for name in np.unique(languages).tolist():
        captions = np.flatnonzero(languages == name)
        images = _images(relevance, captions)
        part = relevance.select(images, captions)
        if len(part.i2t.candidate) and len(part.t2i.candidate):
            parts[name] = images, captions
    return parts


def _images(relevance: Relevance, captions: Ids) -> Ids:
    """The images that have one of these captions, or for which one is right."""
    rows, columns = relevance.shape
    images = np.arange(rows)
    answered = relevance.i2t.restricted(images, captions, columns).query
    answering = relevance.t2i.restricted(captions, images, rows).candidate
    owner = relevance.owner[captions]
    return np.unique(np.concatenate([answered, answering, owner[owner >= 0]]))


def mean_recall(
    measured: Mapping[str, tuple[Ids, Metrics]], confidence: float = 0.95
) -> tuple[float, float, float]:
    """Compute the mean over languages of mR, which is the mean of the six recalls.

    The interval is for other images. Each is drawn with its captions in all languages, because an
    image that is hard in one language tends to be hard in the others.

    Source: Geigle et al., TACL 2022, Table 2, column mean.
    """
    asking = {}
    for name, (images, metrics) in measured.items():
        is_asking = np.concatenate([drawn(ranks) for ranks in metrics.ranks])
        asking[name] = images[is_asking]
    rows = np.unique(np.concatenate(list(asking.values())))
    apart = np.zeros(len(rows))
    for name, (_, metrics) in measured.items():
        of_language = contributions(gather(metrics))[:, -1] / 600
        # All languages count alike in the mean, so each image of a language with fewer images
        # weighs more.
        weighted = of_language * len(rows) / len(of_language) / len(measured)
        apart[np.searchsorted(rows, asking[name])] += weighted
    mean = float(np.mean([metrics.rsum / 600 for _, metrics in measured.values()]))
    low, high = of_mean_share(mean, apart, confidence)
    return 100 * mean, 100 * low, 100 * high
