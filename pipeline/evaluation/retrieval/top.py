"""The most similar candidates of each query, with ties broken at random."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.evaluation.retrieval.similarity import Direction, PerDirection, Similarity, whole_queries


class Top(NamedTuple):
    """The k best candidates of each query."""

    places: Ids  # int64 [Q, k], their rows or columns, best first
    tied: np.ndarray  # bool [Q], whether any two of the first k + 1 candidates are equally similar


def top(source: Similarity | PerDirection, direction: Direction, k: int, generator: np.random.Generator,
        block_megabytes: float = 32, progress: Callable[[int], object] = lambda queries: None) -> Top:
    """Find the k best captions of every image, or the k best images of every caption.

    Equally similar candidates come in a random order, drawn anew for each query, so that none gains by its position.
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
