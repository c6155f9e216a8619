"""Captions in several languages: each language is a pool of its own, and the mean over languages has an interval."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.evaluation.retrieval.metrics import Metrics
from pipeline.evaluation.retrieval.relevance import Relevance, as_relevance
from pipeline.evaluation.statistics.intervals import contributions, drawn, gather, wilson
from pipeline.parts.errors import InputError

Languages = npt.NDArray[np.str_]


def divide(truth: object, shape: tuple[int, int], languages: Languages) -> dict[str, tuple[Ids, Ids]]:
    """Find the images and captions of each language with a right answer: its captions, and the images that have one."""
    if languages.shape != shape[1:]:
        raise InputError(f"languages: expected one for each of {shape[1]} captions, received {list(languages.shape)}")
    found, relevance = {}, as_relevance(truth, shape)
    for name in np.unique(languages).tolist():
        captions = np.flatnonzero(languages == name)
        images = _images(relevance, captions)
        part = relevance.select(images, captions)
        if len(part.i2t.candidate) and len(part.t2i.candidate):
            found[name] = images, captions
    return found


def _images(relevance: Relevance, captions: Ids) -> Ids:
    """The images that have one of these captions, or for which one is right."""
    every = np.arange(relevance.shape[0])
    answered = relevance.i2t.restricted(every, captions, relevance.shape[1]).query
    answering = relevance.t2i.restricted(captions, every, relevance.shape[0]).candidate
    owner = relevance.owner[captions]
    return np.unique(np.concatenate([answered, answering, owner[owner >= 0]]))


def mean_recall(measured: Mapping[str, tuple[Ids, Metrics]], confidence: float = 0.95
                ) -> tuple[float, float, float]:
    """Compute the mean over languages of mR, which is the mean of the six recalls.

    The interval is for other images. Each is drawn with its captions in all languages, because an image that is hard in
    one language tends to be hard in the others.

    Source: Geigle et al., TACL 2022, Table 2, column mean.
    """
    asking = {name: images[np.concatenate([drawn(ranks) for ranks in metrics.ranks])]
              for name, (images, metrics) in measured.items()}
    rows = np.unique(np.concatenate(list(asking.values())))
    each = np.zeros(len(rows))
    for name, (_, metrics) in measured.items():
        own = contributions(gather(metrics))[:, -1] / 600
        # All languages count alike in the mean, so each image of a language with fewer images weighs more.
        each[np.searchsorted(rows, asking[name])] += own * len(rows) / len(own) / len(measured)
    mean = float(np.mean([metrics.rsum / 600 for _, metrics in measured.values()]))
    low, high = wilson(np.array([mean]), np.array([(each**2).sum()]), len(rows), confidence)
    return 100 * mean, 100 * float(low[0]), 100 * float(high[0])
