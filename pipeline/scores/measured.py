"""The numbers of one pool by one protocol, as results hold them. The same scores always give the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pipeline import retrieval
from pipeline.errors import InputError
from pipeline.judgements import cxc, qrels
from pipeline.judgements.eccv_caption import METRICS, eccv_caption
from pipeline.manifest import Manifest
from pipeline.metrics import parse_all
from pipeline.metrics.base import Fold, Ranked
from pipeline.metrics.measure import as_dict, of_pool
from pipeline.metrics.measure import measure as measure_folds
from pipeline.retrieval import Metrics, Protocol, Relevance, Ties
from pipeline.retrieval.collection import Collection
from pipeline.retrieval.placements import place
from pipeline.scores import runs
from pipeline.scores.candidates import Columns, Pool
from pipeline.scores.judged import Truth
from pipeline.settings import Evaluate
from pipeline.statistics import interval

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
    return numbers(pool, rank(pool, rules, ties, settings, progress), rules, settings, progress)


def rank(pool: Pool, rules: str | Protocol, ties: Ties, settings: Evaluate,
         progress: Progress = lambda images: None) -> Metrics:
    """Do the first half of `measure`: find every query's best right candidate, and the recalls.

    Args:
        pool: The scores.
        rules: A protocol or its name.
        ties: How ties are counted.
        settings: The memory to use.
        progress: Called with the number of images ranked so far.

    Returns:
        Recalls and ranks.
    """
    return retrieval.evaluate(pool.scores, pool.truth, rules, ties, settings.block_megabytes, progress)


def numbers(pool: Pool, found: Metrics, rules: str | Protocol, settings: Evaluate,
            progress: Progress = lambda images: None) -> dict[str, Any]:
    """Do the second half of `measure`: intervals, and the metrics that the settings name.

    Args:
        pool: The scores.
        found: What `rank` gave.
        rules: The protocol by which it did.
        settings: Which metrics, how intervals are drawn, and the memory to use.
        progress: Called with the number of images done so far, after those of `rank`.

    Returns:
        JSON values.
    """
    measured = found.as_dict() | {"interval": interval(found)}
    if settings.metrics:
        images = pool.scores.shape[0]
        measured["metrics"] = of_pool(parse_all(settings.metrics), pool.scores, pool.truth, found, rules, settings,
                                      lambda done: progress(images + done))
    return measured


def passes(settings: Evaluate) -> int:
    """Count how often `measure` goes through a pool's images.

    Args:
        settings: Which metrics.

    Returns:
        2 if a metric needs all right candidates of a query, else 1.
    """
    return 2 if any(metric.asks_for_every for metric in parse_all(settings.metrics)) else 1


def measure_run(path: Path, columns: Columns, truth: Truth, ties: Ties, settings: Evaluate) -> dict[str, Any]:
    """Measure a run file, which lists the best candidates of each query.

    Args:
        path: A run of TREC's form, or of ranx.
        columns: The manifest and split by whose images and captions it is measured.
        truth: Judgements; needed without a manifest.
        ties: How equal scores count.
        settings: Which metrics besides R@1, R@5, R@10, and how intervals are drawn.

    Returns:
        JSON values: `metrics`, and how large the pool is.

    Raises:
        InputError: Where it is not said what is right, and for files that cannot be read or do not fit together.
    """
    run = runs.read(path)
    collection, relevance = _judged(run, columns, truth)
    fold = runs.fold_of(path, run, collection, relevance, ties)
    metrics = parse_all(["R@1", "R@5", "R@10", *settings.metrics])
    listed = [way for way in ("i2t", "t2i") if len(run[way].query)]  # type: ignore[index]
    if len(listed) < 2 and (summed := [str(metric) for metric in metrics if metric.summed is not None]):
        raise InputError(f"{path}: lists one direction alone, and {summed[0]} is of both")
    found = as_dict(measure_folds(metrics, [fold], settings.resamples, settings.seed, listed))
    images, captions = collection.shape
    split = {"split": columns.known_split} if columns.known_split else {}
    return {"run": path.name, **split, "images": images, "captions": captions, "protocol": "all", "ties": ties,
            "queries": {way: len(getattr(fold, way).best) for way in listed}, "metrics": found}


def _judged(run: Mapping[Any, runs.Run], columns: Columns, truth: Truth) -> tuple[Collection, Relevance]:
    if truth.same_text or columns.captions_per_image is not None:
        raise InputError("--from-run goes without --same-text and --captions-per-image: name its --manifest or --qrels")
    if columns.manifest is None and truth.qrels is None:
        raise InputError("--from-run needs to know what is right: name its --manifest, or --qrels")
    if columns.manifest is not None:
        split = Manifest.load(columns.manifest).split(columns.split or "test")
        collection = Collection(split.image_ids, split.caption_ids, split.caption_image)
        if truth.qrels is None:
            return collection, Relevance.of_owner(split.caption_image, len(split.image_ids))
    else:
        assert truth.qrels is not None
        collection = runs.collection_of(dict(run), *qrels.ids(truth.qrels))
    return collection, qrels.read(truth.qrels, collection)


def extend(pool: Pool, name: str, settings: Evaluate, progress: Progress = lambda queries: None) -> dict[str, Any]:
    """Measure by other judgements than the captions' own images.

    Args:
        pool: The scores; all of them are used, whatever the protocol.
        name: A key of `EXTENDED`, or "cxc" for CxC's four tasks from its own files.
        settings: How intervals are drawn, and the memory to use.
        progress: Called with the number of images done so far; each set of pairs counts every image twice.

    Returns:
        Under "extended": set of pairs -> metric -> direction.
    """
    if name == "cxc":
        return {"extended": {"cxc": _cxc(pool, settings, progress)}}
    rows, columns, relevance = EXTENDED[name](pool.collection())
    scores, found, done = retrieval.select(pool.scores, rows, columns), {}, 0
    for judged, truth in relevance.items():
        ranks = retrieval.rank(scores, truth, settings.block_megabytes, partial(_told, progress, done))
        measured, done = retrieval.measure([ranks]), done + 2 * len(rows)
        found[judged] = of_pool(parse_all(METRICS[judged]), scores, truth, measured, "all", settings,
                                partial(_told, progress, done - len(rows)))
    return {"extended": found}


def _cxc(pool: Pool, settings: Evaluate, progress: Progress) -> dict[str, Any]:
    """R@1, R@5 and R@10 of CxC's four tasks: across, and where there are embeddings within images and captions."""
    if settings.cxc is None:
        raise InputError("--extended cxc needs CxC's files: name their folder with -S evaluate.cxc=FOLDER, or in "
                         "params.yaml")
    right, metrics = cxc.read(Path(settings.cxc), pool.collection()), parse_all(METRICS["cxc"])
    ranks = retrieval.rank(pool.scores, right.across, settings.block_megabytes, progress)
    fold = Fold.of(right.across, (ranks.i2t, ranks.t2i), "expected")
    found = as_dict(measure_folds(metrics, [fold], settings.resamples, settings.seed))
    if vectors := pool.vectors():
        from pipeline.retrieval.others import Others  # and with it torch

        every = [place(Others(side), Relevance.of_directions(pairs, pairs), "i2t", settings.block_megabytes)
                 for side, pairs in zip(vectors, (right.images, right.captions), strict=True)]
        drawn = right.across.drawn_with[every[1].query]
        within = Fold(Ranked(every[0].best(), every[0].query), Ranked(every[1].best(), drawn), pool.scores.shape[0])
        same = as_dict(measure_folds(metrics, [within], settings.resamples, settings.seed))
        for metric, ways in found.items():
            for task, way in (("i2i", "i2t"), ("t2t", "t2i")):
                ways[task] = same[metric][way]
                ways["interval"][task] = same[metric]["interval"][way]
    return found


def _told(progress: Progress, before: int, done: int) -> None:
    progress(before + done)
