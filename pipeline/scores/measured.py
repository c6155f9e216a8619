"""The numbers of one pool by one protocol, as results hold them. The same scores always give the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeline import retrieval
from pipeline.retrieval import Protocol, Ties
from pipeline.retrieval.extended import EXTENDED
from pipeline.scores.candidates import Pool
from pipeline.settings import Evaluate

Progress = Callable[[int], object]


def measure(pool: Pool, rules: str | Protocol, ties: Ties, settings: Evaluate,
            progress: Progress = lambda images: None) -> dict[str, Any]:
    """Measure recalls, ranks and RSUM with their intervals.

    Args:
        pool: The scores.
        rules: A protocol or its name.
        ties: How ties are counted.
        settings: How intervals are drawn, and the memory to use.
        progress: Called with the number of images ranked so far.

    Returns:
        JSON values.
    """
    metrics = retrieval.evaluate(pool.scores, pool.truth, rules, ties, settings.block_megabytes, progress)
    return metrics.as_dict() | {"interval": retrieval.interval(metrics)}


def extend(pool: Pool, name: str, settings: Evaluate, progress: Progress = lambda queries: None) -> dict[str, Any]:
    """Measure what `retrieval.extended` offers beyond recalls.

    Args:
        pool: The scores, with ids.
        name: A key of `EXTENDED`.
        settings: The seed, and the memory to use.
        progress: Called with the number of queries ranked so far.

    Returns:
        JSON values under "extended".
    """
    images, captions = pool.require_ids()
    return {"extended": EXTENDED[name](pool.scores, images, captions, pool.caption_image, settings.seed,
                                       settings.block_megabytes, progress)}
