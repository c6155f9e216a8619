"""Hubs: candidates that are among the nearest of far more queries than others.

Radovanović, Nanopoulos and Ivanović 2010, "Hubs in Space" (JMLR): N_k of a candidate is the number
of queries that have it among their k nearest; the skewness of N_k over the candidates measures
hubness, and is 0 without hubs.
"""

from typing import NamedTuple

import numpy as np

from pipeline.evaluation.metrics.base import Sampling
from pipeline.evaluation.retrieval.blocks import Direction
from pipeline.evaluation.retrieval.similarity import Scores
from pipeline.evaluation.retrieval.top import top


class Hubness(NamedTuple):
    """How often candidates are among the k nearest of a query."""

    skewness: (
        float  # the third standardised moment of N_k; 0 if all candidates are found equally often
    )
    most: int  # the largest N_k
    mean: float  # the mean N_k, k times queries by candidates
    never: int  # how many candidates are among the k nearest of no query
    candidates: int  # how many there are


def hubness(source: Scores, direction: Direction, settings: Sampling, k: int = 10) -> Hubness:
    """Count how often each candidate is among the k nearest of a query, N_k, and summarise it."""
    found = top(
        source, direction, k, np.random.default_rng(settings.seed), settings.block_megabytes
    )
    counts = np.bincount(
        found.places.ravel(), minlength=source.shape[1 if direction == "i2t" else 0]
    )
    apart = counts - counts.mean()
    spread = float(np.sqrt((apart**2).mean()))
    skewness = float((apart**3).mean()) / spread**3 if spread > 0 else 0.0
    return Hubness(
        skewness, int(counts.max()), float(counts.mean()), int((counts == 0).sum()), len(counts)
    )
