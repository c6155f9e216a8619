"""The numbers of one pool by one protocol, as results hold them: the same ones each time from the same scores."""

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
    """Recalls, ranks and RSUM with their intervals. progress: told the images ranked so far."""
    metrics = retrieval.evaluate(pool.scores, pool.truth, rules, ties, settings.block_megabytes, progress)
    return metrics.as_dict() | {"interval": retrieval.interval(metrics)}


def extend(pool: Pool, name: str, settings: Evaluate, progress: Progress = lambda queries: None) -> dict[str, Any]:
    """The numbers beyond recalls of this name (see `retrieval.extended`), under "extended"."""
    images, captions = pool.require_ids()
    return {"extended": EXTENDED[name](pool.scores, images, captions, pool.caption_image, settings.seed,
                                       settings.block_megabytes, progress)}
