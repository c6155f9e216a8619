"""Hubs: candidates that are among the nearest of far more queries than others.

Radovanović, Nanopoulos and Ivanović 2010, "Hubs in Space" (JMLR): N_k of a candidate is the number
of queries that have it among their k nearest; the skewness of N_k over the candidates measures
hubness, and is 0 without hubs.
"""

from typing import NamedTuple

import numpy as np

from pipeline.foundation.evaluation.metrics.base import Sampling
from pipeline.foundation.evaluation.retrieval.blocks import Direction
from pipeline.foundation.evaluation.retrieval.similarity import Scores
from pipeline.foundation.evaluation.retrieval.top import top


class Hubness(NamedTuple):
    """How often candidates are among the k nearest of a query."""

    # The third standardised moment of N_k; 0 if all candidates are found equally often.
    skewness: float
    most: int  # the largest N_k
    mean: float  # the mean N_k, k times queries by candidates
    never: int  # how many candidates are among the k nearest of no query
    candidates: int  # how many there are


def hubness(source: Scores, direction: Direction, settings: Sampling, k: int = 10) -> Hubness:
    """Count how often each candidate is among the k nearest of a query, N_k, and summarise it."""
    generator = np.random.default_rng(settings.seed)
    nearest = top(source, direction, k, generator, settings.block_megabytes)
    images, captions = source.shape
    candidates = images
    if direction == "i2t":
        candidates = captions
    counts = np.bincount(nearest.places.ravel(), minlength=candidates)
    apart = counts - counts.mean()
    spread = float(np.sqrt((apart**2).mean()))
    skewness = 0.0
    if spread > 0:
        skewness = float((apart**3).mean()) / spread**3
    never = int((counts == 0).sum())
    return Hubness(skewness, int(counts.max()), float(counts.mean()), never, len(counts))
