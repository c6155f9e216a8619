"""CLIP_benchmark's zero-shot retrieval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.retrieval import Direction, Ids, QueryRanks, Ranks
from pipeline.foundation.evaluation.retrieval.similarity import as_similarity, of_direction
from pipeline.foundation.parts.errors import InputError, counted, refusing
from pipeline.judge.systems.scores.conventions import Numbers, OfMatrices, refuse_lists

if TYPE_CHECKING:
    from pipeline.judge.systems.scores.system import System

# The metrics, and the directions that they are of.
DIRECTIONS: dict[str, Direction] = {
    "image_retrieval_recall": "t2i",
    "text_retrieval_recall": "i2t",
}
CUTOFFS = (1, 5, 10)


class ClipBenchmark(OfMatrices):
    """CLIP_benchmark: whether any right candidate is among the first K of torch.topk, which orders
    ties as it likes; the mean in 32 bits.

    An image without a caption counts as one that finds nothing.

    Source:
        clip_benchmark/metrics/zeroshot_retrieval.py of CLIP_benchmark 1.6.2.
    """

    ties = "ties as torch.topk orders them"

    def measure(self, system: System, names: Sequence[str] = ()) -> Numbers:
        refuse_lists(system)
        images, captions = system.shape
        if not names:
            smallest = min(images, captions)
            names = [f"{name}@{k}" for name in DIRECTIONS for k in CUTOFFS if k <= smallest]
        asked = [(name, *_metric(name, system)) for name in names]
        ranks = retrieval.rank(system.scores, system.truth)
        values = {}
        for name, way, k in asked:
            queries = images if way == "i2t" else captions
            hits = np.float32(_hits(system, ranks, way, k))
            values[name] = float(hits / np.float32(queries))
        return Numbers(values, {"image": images, "caption": captions}, [])


def _metric(name: str, system: System) -> tuple[Direction, int]:
    """The direction of a metric, and its cutoff."""
    metric, _, digits = name.partition("@")
    if metric not in DIRECTIONS or not digits.isascii() or not digits.isdigit() or not int(digits):
        known = ", ".join(f"{each}@K" for each in DIRECTIONS)
        raise InputError(f"--metric {name[:40]}: the tool has {known}")
    way = DIRECTIONS[metric]
    images, captions = system.shape
    candidates = captions if way == "i2t" else images
    if int(digits) > candidates:
        raise InputError(
            f"--metric {name[:40]}: the tool refuses a cutoff above the {candidates} candidates"
        )
    return way, int(digits)


def _hits(system: System, ranks: Ranks, way: Direction, k: int) -> int:
    """How many queries have a right candidate among their first k."""
    of_way: QueryRanks = ranks.i2t if way == "i2t" else ranks.t2i
    sure = of_way.greater + of_way.equal < k
    open_queries = of_way.query[(of_way.greater < k) & ~sure]
    hits = int(np.count_nonzero(sure))
    if not len(open_queries):
        return hits
    positives = ranks.relevance.i2t if way == "i2t" else ranks.relevance.t2i
    for query in open_queries.tolist():
        pairs = slice(positives.start[query], positives.start[query + 1])
        hits += bool(np.isin(_first(system, way, query, k), positives.candidate[pairs]).any())
    return hits


def _first(system: System, way: Direction, query: int, k: int) -> Ids:
    """The first k candidates of a query, as torch orders ties."""
    with refusing(
        ImportError,
        f"{system.name}: {counted(1, 'query')} or more have ties at {k}, which CLIP_benchmark leaves to "
        "torch.topk; install torch, or leave out --as",
    ):
        import torch
    source = of_direction(as_similarity(system.scores), way)
    images, captions = source.shape
    if way == "i2t":
        scores = source.block(slice(query, query + 1), slice(0, captions))[0]
    else:
        scores = source.block(slice(0, images), slice(query, query + 1))[:, 0]
    found: Ids = torch.topk(torch.tensor(np.ascontiguousarray(scores)), k).indices.numpy()
    return found
