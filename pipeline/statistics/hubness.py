"""Hubs: candidates that are among the nearest of far more queries than others.

Radovanović, Nanopoulos and Ivanović 2010, "Hubs in Space" (JMLR): N_k of a candidate is the number of queries that
have it among their k nearest; the skewness of N_k over the candidates measures hubness, and is 0 without hubs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.retrieval.blocks import Ids
from pipeline.retrieval.similarity import Direction, PerDirection, Similarity
from pipeline.retrieval.top import top


class Hubness(NamedTuple):
    """How often candidates are among the k nearest of a query.

    Attributes:
        skewness: The third standardised moment of N_k; 0 if all candidates are found equally often.
        most: The largest N_k.
        mean: The mean N_k, k times queries by candidates.
        never: How many candidates are among the k nearest of no query.
        candidates: How many there are.
    """

    skewness: float
    most: int
    mean: float
    never: int
    candidates: int


def occurrences(source: Similarity | PerDirection, direction: Direction, k: int, seed: int, block_megabytes: float = 32
                ) -> Ids:
    """Count how often each candidate is among the k nearest of a query.

    Args:
        source: Scores [I, C].
        direction: "i2t" if captions are the candidates, "t2i" if images are.
        k: How many of each query; all where there are fewer.
        seed: Of the generator that orders equally similar candidates.
        block_megabytes: About the size of one block (10^6 bytes).

    Returns:
        Int64 [candidates], N_k.
    """
    candidates = source.shape[1 if direction == "i2t" else 0]
    found = top(source, direction, min(k, candidates), np.random.default_rng(seed), block_megabytes)
    return np.bincount(found.places.ravel(), minlength=candidates)


def hubness(counts: Ids) -> Hubness:
    """Summarise N_k.

    Args:
        counts: Int64 [candidates], from `occurrences`.

    Returns:
        The summary.
    """
    apart = counts - counts.mean()
    spread = float(np.sqrt((apart ** 2).mean()))
    skewness = float((apart ** 3).mean()) / spread ** 3 if spread > 0 else 0.0
    return Hubness(skewness, int(counts.max()), float(counts.mean()), int((counts == 0).sum()), len(counts))
