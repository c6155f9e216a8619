"""The numbers of one pool by one protocol, as results hold them, and a table of its queries.

The same scores always give the same numbers.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pipeline.foundation import evaluation
from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.metrics import (
    RECALLS,
    Metrics,
    evaluate,
    measure as measure_ranks,
    parse_all,
)
from pipeline.foundation.evaluation.metrics.base import (
    Fold,
    Ranked,
    as_dict,
    joined,
    with_intervals,
)
from pipeline.foundation.evaluation.metrics.standard import of_pool
from pipeline.foundation.evaluation.retrieval import (
    Lists,
    Positives,
    Protocol,
    Relevance,
    Ties,
    placements,
)
from pipeline.foundation.evaluation.retrieval.similarity import vectors_of
from pipeline.foundation.evaluation.retrieval.workers import Progress, after
from pipeline.foundation.evaluation.statistics import interval, pack
from pipeline.foundation.evaluation.statistics.intervals import mean_recall
from pipeline.foundation.files import atomic
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.parts.wrapping import cell
from pipeline.foundation.settings import Evaluate
from pipeline.judge.systems.scores.system import Part, System

if TYPE_CHECKING:
    import pandas as pd

# The columns by which systems' tables of queries are put side by side.
KEYS = ["protocol", "language", "direction", "fold", "query"]


class Measured(NamedTuple):
    """What was measured of a pool by one protocol."""

    # recalls, ranks, RSUM and metrics with intervals; of each language too, and their mean
    numbers: dict[str, Any]
    hits: dict[str, Any]  # the hits of each image as results keep them, of each language too
    ranked: list[tuple[Part, Metrics]]  # of all captions, then of each language's


def measure(
    system: System,
    rules: str | Protocol,
    ties: Ties,
    settings: Evaluate,
    progress: Progress = lambda images: None,
) -> Measured:
    """Rank a pool, and each language's captions with the images that have one as a pool of their
    own.
    """
    passes = _passes(settings)
    done = 0
    numbers: dict[str, Any] = {}
    hits: dict[str, Any] = {}
    ranked: list[tuple[Part, Metrics]] = []
    for part in system.parts(rules):
        pool = part.system
        metrics = evaluate(
            pool.scores,
            pool.truth,
            part.rules,
            ties,
            settings.block_megabytes,
            after(progress, done),
        )
        after_ranking = after(progress, done + pool.shape[0])
        numbers[part.language] = _numbers(part, metrics, settings, after_ranking)
        hits[part.language] = pack(metrics, pool.image_ids, pool.caption_ids)
        ranked.append((part, metrics))
        done += passes * pool.shape[0]
    whole = numbers.pop("")
    hits_of_whole = hits.pop("")
    if numbers:
        for of_language in numbers.values():
            _add_mean_recall(of_language)
        whole["languages"] = numbers
        whole["mean_of_languages"] = _mean_of_languages(ranked[1:])
        hits_of_whole["languages"] = hits
    return Measured(whole, hits_of_whole, ranked)


def _numbers(
    part: Part, metrics: Metrics, settings: Evaluate, progress: Progress
) -> dict[str, Any]:
    """The recalls and ranks of one pool, and the metrics that the settings name."""
    pool = part.system
    numbers = metrics.as_dict() | {"interval": interval(metrics)} | metrics.over_ties
    named = parse_all(settings.metrics)
    if not named:
        return numbers
    summed = [metric for metric in named if metric.summed is not None]
    if summed and len(metrics.directions) < 2:
        raise InputError(
            f"{pool.name}: ranks one direction only; leave out the metric {summed[0]}, which "
            "needs both"
        )
    others = of_pool(named, pool.scores, pool.truth, metrics, part.rules, settings, progress)
    return joined(numbers, others)


def of_lists(result: Measured) -> dict[str, Any]:
    """What `lists_of` says of a pool."""
    part, metrics = result.ranked[0]
    return lists_of(part.system, metrics)


def lists_of(system: System, metrics: Metrics) -> dict[str, Any]:
    """For each direction of lists, the length of the longest, and how many queries have no right
    candidate in theirs; {} for other scores.
    """
    lists = system.scores
    if not isinstance(lists, Lists):
        return {}
    described: dict[str, Any] = {}
    for way in lists.listed:
        better = [getattr(fold, way).greater for fold in metrics.ranks]
        is_missing = np.concatenate(better) >= placements.NEVER
        described[way] = {"longest": lists.longest(way), "without_right": int(is_missing.sum())}
        judgements = system.judgements
        if is_missing.all() and lists.example and judgements is not None:
            described[way]["candidates_such_as"] = [lists.example, judgements.example]
    return described


def _add_mean_recall(numbers: dict[str, Any]) -> None:
    """Add mR with its interval to the numbers of one language; None where lists rank one direction
    alone.
    """
    intervals = numbers["interval"]
    numbers["mR"] = None
    intervals["mR"] = None
    if numbers["RSUM"] is not None:
        numbers["mR"] = numbers["RSUM"] / 6
        intervals["mR"] = [end / 6 for end in intervals["RSUM"]]


def _mean_of_languages(ranked: Sequence[tuple[Part, Metrics]]) -> dict[str, Any]:
    """The mean recall over the languages, with its interval; None where one has no mR."""
    if any(math.isnan(metrics.rsum) for _, metrics in ranked):
        return {"mR": None, "interval": {"mR": None}}
    by_language = {part.language: (part.images, metrics) for part, metrics in ranked}
    mean, *ends = mean_recall(by_language)
    return {"mR": mean, "interval": {"mR": ends}}


def work(system: System, rules: str | Protocol, settings: Evaluate) -> int:
    """Count the images that `measure` reports as progress; each counts once for each pass over
    it.
    """
    return _passes(settings) * sum(len(part.images) for part in system.parts(rules))


def _passes(settings: Evaluate) -> int:
    metrics = parse_all(settings.metrics)
    if any(metric.asks_for_every for metric in metrics):
        return 2
    return 1


def extend(
    system: System, name: str, settings: Evaluate, progress: Progress = lambda queries: None
) -> dict[str, Any]:
    """Measure by other judgements than the captions' own images."""
    if name == "cxc":
        return {"extended": {"cxc": _cxc(system, settings, progress)}}
    system.require_ids()
    rows, columns, relevance = evaluation.judgements.coco_pairs.eccv_caption(system)
    scores = retrieval.select(system.scores, rows, columns)
    numbers: dict[str, Any] = {}
    done = 0
    for judged, truth in relevance.items():
        ranks = retrieval.rank(scores, truth, settings.block_megabytes, after(progress, done))
        metrics = parse_all(evaluation.judgements.coco_pairs.METRICS[judged])
        ranked = measure_ranks([ranks])
        after_ranking = after(progress, done + len(rows))
        numbers[judged] = of_pool(metrics, scores, truth, ranked, "all", settings, after_ranking)
        done += 2 * len(rows)
    return {"extended": numbers}


def _cxc(system: System, settings: Evaluate, progress: Progress) -> dict[str, Any]:
    """R@1, R@5 and R@10 of CxC's four tasks; those within images and within captions only if there
    are embeddings.
    """
    if settings.cxc is None:
        raise InputError(
            "--extended cxc needs CxC's files: name their folder with -S evaluate.cxc=FOLDER"
        )
    system.require_ids()
    right = evaluation.judgements.coco_pairs.cxc(Path(settings.cxc), system)
    metrics = parse_all(evaluation.judgements.coco_pairs.METRICS["cxc"])
    ranks = retrieval.rank(system.scores, right.across, settings.block_megabytes, progress)
    across = Fold.of(ranks, "expected")
    asking = measure_ranks([ranks]).directions
    across_sides = with_intervals(metrics, [across], settings.resamples, settings.seed, asking)
    numbers = as_dict(across_sides)
    vectors = _vectors(system)
    if vectors is None:
        return numbers
    of_images, of_captions = vectors
    images = _placed_among_own_side(of_images, right.images, settings)
    captions = _placed_among_own_side(of_captions, right.captions, settings)
    within = Fold(
        Ranked(images.best(), images.query),
        Ranked(captions.best(), right.across.drawn_with[captions.query]),
        system.scores.shape[0],
    )
    of_sides = as_dict(with_intervals(metrics, [within], settings.resamples, settings.seed))
    for task, way in (("i2i", "i2t"), ("t2t", "t2i")):
        numbers[task] = of_sides[way]
        numbers["interval"][task] = of_sides["interval"][way]
    return numbers


def _placed_among_own_side(
    vectors: Any, pairs: Positives, settings: Evaluate
) -> placements.Placements:
    """Place what is right for each vector among the other vectors of its side."""
    relevance = Relevance.of_directions(pairs, pairs)
    return placements.place(
        retrieval.embeddings.Others(vectors), relevance, "i2t", settings.block_megabytes
    )


def _vectors(system: System) -> tuple[Any, Any] | None:
    """The vectors behind the scores; None if there are none, as for ensembles."""
    vectors = vectors_of(system.scores)
    if vectors:
        return vectors
    if system.has_vectors():
        return system.vectors("image"), system.vectors("caption")
    return None


def query_table(by_protocol: Sequence[Measured], name: str = "") -> "pd.DataFrame":
    """A row for each query of one system by each protocol: its rank, ties and hits."""
    import pandas as pd

    start = f"{name} " if name else ""
    tables = []
    for result in by_protocol:
        for part, metrics in result.ranked:
            labels = {"protocol": metrics.protocol}
            if len(result.ranked) > 1:
                labels["language"] = part.language
            tables += _tables_of_part(part, metrics, labels, start)
    return pd.concat(tables, ignore_index=True)


def _tables_of_part(
    part: Part, metrics: Metrics, labels: dict[str, str], start: str
) -> "list[pd.DataFrame]":
    """A table for each fold and direction of one pool. start: what the columns of measures begin
    with.
    """
    import pandas as pd

    pool = part.system
    owner = pool.caption_image if pool.relevance is None else pool.relevance.owner
    folds = part.rules.parts(owner, pool.shape[0])
    tables = []
    for fold, (ranks, rows) in enumerate(zip(metrics.ranks, folds, strict=True)):
        images, captions = rows
        image_ids = pool.image_ids[images]
        caption_ids = pool.caption_ids[captions]
        for way, queries, ids in (
            ("i2t", ranks.i2t, image_ids),
            ("t2i", ranks.t2i, caption_ids),
        ):
            rank = queries.ranks(metrics.ties)
            # Lists do not tell the rank of what they do not have.
            rank[queries.greater >= placements.NEVER] = np.nan
            columns = {
                **labels,
                "direction": way,
                "fold": fold,
                "query": ids[queries.query],
                f"{start}rank": rank,
                f"{start}tied": queries.equal,
            }
            for k in RECALLS:
                columns[f"{start}R@{k}"] = queries.hits(k, metrics.ties)
            tables.append(pd.DataFrame(columns))
    return tables


def write_query_tables(path: Path, tables: "list[pd.DataFrame]") -> None:
    """Write the systems' tables side by side, by query; where only some have languages, the
    others' rows are of all captions.
    """
    if any("language" in table for table in tables):
        tables = [_with_language(table) for table in tables]
    whole = tables[0]
    keys = [key for key in KEYS if key in whole]
    for other in tables[1:]:
        whole = whole.merge(other, how="outer", on=keys, sort=False)
    with atomic.replacing(path) as partial:
        if path.suffix.lower() == ".parquet":
            whole.to_parquet(partial, index=False)
        else:
            whole.rename(columns=cell).to_csv(partial, index=False)


def _with_language(table: "pd.DataFrame") -> "pd.DataFrame":
    """A table of queries with the column of languages, "" for all captions."""
    if "language" in table:
        return table
    with_language = table.copy()
    with_language.insert(1, "language", "")
    return with_language
