"""The most similar candidates of each query, with ties broken at random, and hubs among them.

A hub is among the nearest candidates of far more queries than others. Radovanović, Nanopoulos and Ivanović 2010, "Hubs
in Space" (JMLR): N_k of a candidate is the number of queries that have it among their k nearest; the skewness of N_k
over the candidates measures hubness, and is 0 without hubs.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pipeline.evaluation.retrieval.blocks import Direction, Ids
from pipeline.evaluation.retrieval.similarity import Scores, Similarity, whole_queries


class Top(NamedTuple):
    """The k best candidates of each query."""

    places: Ids  # int64 [Q, k], their rows or columns, best first
    tied: np.ndarray  # bool [Q], whether any two of the first k + 1 candidates are equally similar


def top(source: Scores, direction: Direction, k: int, generator: np.random.Generator,
        block_megabytes: float = 32, progress: Callable[[int], object] = lambda queries: None) -> Top:
    """Find the k best captions of every image, or the k best images of every caption.

    Equally similar candidates come in a random order, another for each query, so that none gains by its position.
    The order depends on `generator` alone, not on the size of blocks.
    """
    import torch

    from pipeline.evaluation.retrieval.embeddings import to_tensor

    block_bytes = int(block_megabytes * 1e6)
    queries, candidates = source.shape if direction == "i2t" else source.shape[::-1]
    places, tied = np.empty((queries, k), np.int64), np.empty(queries, bool)
    for part, cells in whole_queries(source, direction, block_bytes):
        scores = to_tensor(cells)
        best = scores.topk(min(k + 1, candidates), dim=1)
        places[part] = best.indices[:, :k].numpy()
        tied[part] = (best.values[:, 1:] == best.values[:, :-1]).any(1).numpy()
        for query in np.flatnonzero(tied[part]):
            # The order in which topk gives equal values depends on their positions, so these are shuffled before it.
            order = generator.permutation(candidates)
            places[part.start + query] = order[scores[query, torch.from_numpy(order)].topk(k).indices.numpy()]
        progress(part.stop)
    return Top(places, tied)


def scores_at(source: Similarity, direction: Direction, places: Ids) -> np.ndarray:
    """Read the scores of queries' candidates, float64 [Q, k], by their rows or columns, int64 [Q, k]."""
    query = np.repeat(np.arange(len(places)), places.shape[1])
    pairs = (query, places.reshape(-1)) if direction == "i2t" else (places.reshape(-1), query)
    return np.asarray(source.pairs(*pairs), np.float64).reshape(places.shape)


class Hubness(NamedTuple):
    """How often candidates are among the k nearest of a query."""

    skewness: float  # the third standardised moment of N_k; 0 if all candidates are found equally often
    most: int  # the largest N_k
    mean: float  # the mean N_k, k times queries by candidates
    never: int  # how many candidates are among the k nearest of no query
    candidates: int  # how many there are


def occurrences(source: Scores, direction: Direction, k: int, seed: int, block_megabytes: float = 32) -> Ids:
    """Count how often each candidate is among the k nearest of a query."""
    candidates = source.shape[1 if direction == "i2t" else 0]
    found = top(source, direction, min(k, candidates), np.random.default_rng(seed), block_megabytes)
    return np.bincount(found.places.ravel(), minlength=candidates)


def hubness(counts: Ids) -> Hubness:
    """Summarise N_k."""
    apart = counts - counts.mean()
    spread = float(np.sqrt((apart ** 2).mean()))
    skewness = float((apart ** 3).mean()) / spread ** 3 if spread > 0 else 0.0
    return Hubness(skewness, int(counts.max()), float(counts.mean()), int((counts == 0).sum()), len(counts))
