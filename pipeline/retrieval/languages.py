"""Captions in several languages: each language is a pool of its own, and the mean over languages has an interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.errors import InputError
from pipeline.retrieval.blocks import Ids
from pipeline.retrieval.metrics import Metrics
from pipeline.retrieval.similarity import PerDirection, Similarity, select
from pipeline.statistics.intervals import wilson
from pipeline.statistics.per_image import contributions, gather

Languages = npt.NDArray[np.str_]


@dataclass(frozen=True)
class LanguagePool:
    """The captions of one language, and the images that have one.

    Attributes:
        scores: [I', C'].
        caption_image: int64 [C'], each caption's image as a row of `scores`.
        images: int64 [I'], rows of the whole pool.
        captions: int64 [C'], columns of the whole pool.
    """

    scores: Similarity | PerDirection
    caption_image: Ids
    images: Ids
    captions: Ids


def divide(scores: Similarity | PerDirection, caption_image: Ids, languages: Languages) -> dict[str, LanguagePool]:
    """Divide a pool by language.

    Args:
        scores: [I, C].
        caption_image: int64 [C], each caption's image as a row.
        languages: [C], each caption's language.

    Returns:
        Language -> its pool, in alphabetical order.

    Raises:
        InputError: Unless there is one language for each caption.
    """
    if languages.shape != caption_image.shape:
        raise InputError(f"languages: expected one for each of {len(caption_image)} captions, received "
                         f"{list(languages.shape)}")
    found = {}
    for name in np.unique(languages).tolist():
        captions = np.flatnonzero(languages == name)
        images, owner = np.unique(caption_image[captions], return_inverse=True)
        found[name] = LanguagePool(select(scores, images, captions), owner.astype(np.int64), images, captions)
    return found


def mean_recall(measured: Mapping[str, tuple[LanguagePool, Metrics]], confidence: float = 0.95
                ) -> tuple[float, float, float]:
    """Compute the mean over languages of mR, which is the mean of the six recalls.

    The interval is for other images. Each is drawn with its captions in all languages, because an image that is hard in
    one language tends to be hard in the others.

    Args:
        measured: Language -> its pool and its metrics.
        confidence: Between 0 and 1.

    Returns:
        The mean, and its interval's ends, in percent.

    Source: Geigle et al., TACL 2022, Table 2, column mean.
    """
    rows = np.unique(np.concatenate([pool.images for pool, _ in measured.values()]))
    each = np.zeros(len(rows))
    for pool, metrics in measured.values():
        own = contributions(gather(metrics))[:, -1] / 600
        # All languages count alike in the mean, so each image of a language with fewer images weighs more.
        each[np.searchsorted(rows, pool.images)] += own * len(rows) / len(own) / len(measured)
    mean = float(np.mean([metrics.rsum / 600 for _, metrics in measured.values()]))
    low, high = wilson(np.array([mean]), np.array([(each**2).sum()]), len(rows), confidence)
    return 100 * mean, 100 * float(low[0]), 100 * float(high[0])
