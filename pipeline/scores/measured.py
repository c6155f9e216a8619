"""The numbers of one pool by one protocol, as results hold them. The same scores always give the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pipeline import retrieval
from pipeline.judgements.eccv_caption import METRICS, eccv_caption
from pipeline.metrics import parse_all
from pipeline.metrics.measure import of_pool
from pipeline.retrieval import Protocol, Ties
from pipeline.scores.candidates import Pool
from pipeline.settings import Evaluate

Progress = Callable[[int], object]

EXTENDED = {"eccv_caption": eccv_caption}
"""Judgements that are measured besides the captions' own, by name."""


def measure(pool: Pool, rules: str | Protocol, ties: Ties, settings: Evaluate,
            progress: Progress = lambda images: None) -> dict[str, Any]:
    """Measure recalls, ranks and RSUM, and the metrics that the settings name, with their intervals.

    Args:
        pool: The scores.
        rules: A protocol or its name.
        ties: How ties are counted.
        settings: Metrics, how intervals are drawn, and the memory to use.
        progress: Called with the number of images ranked so far; twice as many for metrics that need a second pass.

    Returns:
        JSON values.
    """
    found = retrieval.evaluate(pool.scores, pool.truth, rules, ties, settings.block_megabytes, progress)
    numbers = found.as_dict() | {"interval": retrieval.interval(found)}
    if settings.metrics:
        images = pool.scores.shape[0]
        numbers["metrics"] = of_pool(parse_all(settings.metrics), pool.scores, pool.truth, found, rules, settings,
                                     lambda done: progress(images + done))
    return numbers


def extend(pool: Pool, name: str, settings: Evaluate, progress: Progress = lambda queries: None) -> dict[str, Any]:
    """Measure by other judgements than the captions' own images.

    Args:
        pool: The scores; all of them are used, whatever the protocol.
        name: A key of `EXTENDED`.
        settings: How intervals are drawn, and the memory to use.
        progress: Called with the number of images done so far; each set of pairs counts every image twice.

    Returns:
        Under "extended": set of pairs -> metric -> direction.
    """
    rows, columns, relevance = EXTENDED[name](pool.collection())
    scores, found, done = retrieval.select(pool.scores, rows, columns), {}, 0
    for judged, truth in relevance.items():
        ranks = retrieval.rank(scores, truth, settings.block_megabytes, partial(_told, progress, done))
        measured, done = retrieval.measure([ranks]), done + 2 * len(rows)
        found[judged] = of_pool(parse_all(METRICS[judged]), scores, truth, measured, "all", settings,
                                partial(_told, progress, done - len(rows)))
    return {"extended": found}


def _told(progress: Progress, before: int, done: int) -> None:
    progress(before + done)
