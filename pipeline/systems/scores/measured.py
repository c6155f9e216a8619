"""The numbers of one pool by one protocol, as results hold them, and a table of its queries.

The same scores always give the same numbers.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.evaluation import retrieval
from pipeline.evaluation.judgements.coco_pairs import METRICS, cxc, eccv_caption
from pipeline.evaluation.metrics import (
    RECALLS,
    Metrics,
    evaluate,
    measure as measure_ranks,
    parse_all,
)
from pipeline.evaluation.metrics.base import Fold, Ranked, as_dict, with_intervals
from pipeline.evaluation.metrics.numbers import joined
from pipeline.evaluation.metrics.standard import of_pool
from pipeline.evaluation.retrieval import Protocol, Relevance, Ties, placements
from pipeline.evaluation.retrieval.embeddings import Others, vectors_of
from pipeline.evaluation.retrieval.workers import Progress, after
from pipeline.evaluation.statistics import interval, pack
from pipeline.evaluation.statistics.intervals import mean_recall
from pipeline.files import atomic, results
from pipeline.parts.errors import InputError
from pipeline.settings import Evaluate
from pipeline.systems.scores.system import Part, System

if TYPE_CHECKING:
    import pandas as pd

# The columns by which systems' tables of queries are put side by side.
KEYS = ["protocol", "language", "direction", "fold", "query"]


class Measured(NamedTuple):
    """What was measured of a pool by one protocol."""

    numbers: dict[
        str, Any
    ]  # recalls, ranks, RSUM and metrics with intervals; of each language too, and their mean
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
    named, passes = parse_all(settings.metrics), _passes(settings)
    done, numbers, hits, ranked = 0, {}, {}, []
    for part in system.parts(rules):
        name, pool = part.language, part.system
        found = evaluate(
            pool.scores,
            pool.truth,
            part.rules,
            ties,
            settings.block_megabytes,
            after(progress, done),
        )
        numbers[name] = found.as_dict() | {"interval": interval(found)}
        if summed := [
            str(metric)
            for metric in named
            if metric.summed is not None and len(found.directions) < 2
        ]:
            raise InputError(
                f"{pool.name}: ranks one direction only; leave out the metric {summed[0]}, which "
                "needs both"
            )
        if named:
            numbers[name] = joined(
                numbers[name],
                of_pool(
                    named,
                    pool.scores,
                    pool.truth,
                    found,
                    part.rules,
                    settings,
                    after(progress, done + pool.shape[0]),
                ),
            )
        hits[name] = pack(found, pool.image_ids, pool.caption_ids)
        ranked.append((part, found))
        done += passes * pool.shape[0]
    whole, of_images = numbers.pop(""), hits.pop("")
    if numbers:
        for each in numbers.values():
            each["mR"] = each["RSUM"] / 6
            each["interval"]["mR"] = [end / 6 for end in each["interval"]["RSUM"]]
        mean, *ends = mean_recall(
            {part.language: (part.images, found) for part, found in ranked[1:]}
        )
        whole |= {"languages": numbers, "mean_of_languages": {"mR": mean, "interval": {"mR": ends}}}
        of_images |= {"languages": hits}
    return Measured(whole, of_images, ranked)


def work(system: System, rules: str | Protocol, settings: Evaluate) -> int:
    """Count the images that `measure` reports as progress; each counts once for each pass over
    it.
    """
    return _passes(settings) * sum(len(part.images) for part in system.parts(rules))


def _passes(settings: Evaluate) -> int:
    return 2 if any(metric.asks_for_every for metric in parse_all(settings.metrics)) else 1


def extend(
    system: System, name: str, settings: Evaluate, progress: Progress = lambda queries: None
) -> dict[str, Any]:
    """Measure by other judgements than the captions' own images."""
    if name == "cxc":
        return {"extended": {"cxc": _cxc(system, settings, progress)}}
    system.require_ids()
    rows, columns, relevance = eccv_caption(system)
    scores, found, done = retrieval.select(system.scores, rows, columns), {}, 0
    for judged, truth in relevance.items():
        ranks = retrieval.rank(scores, truth, settings.block_megabytes, after(progress, done))
        done += 2 * len(rows)
        found[judged] = of_pool(
            parse_all(METRICS[judged]),
            scores,
            truth,
            measure_ranks([ranks]),
            "all",
            settings,
            after(progress, done - len(rows)),
        )
    return {"extended": found}


def _cxc(system: System, settings: Evaluate, progress: Progress) -> dict[str, Any]:
    """R@1, R@5 and R@10 of CxC's four tasks; those within images and within captions only if there
    are embeddings.
    """
    if settings.cxc is None:
        raise InputError(
            "--extended cxc needs CxC's files: name their folder with -S evaluate.cxc=FOLDER"
        )
    system.require_ids()
    right, metrics = cxc(Path(settings.cxc), system), parse_all(METRICS["cxc"])
    ranks = retrieval.rank(system.scores, right.across, settings.block_megabytes, progress)
    found = as_dict(
        with_intervals(metrics, [Fold.of(ranks, "expected")], settings.resamples, settings.seed)
    )
    if vectors := _vectors(system):
        every = [
            placements.place(
                Others(side), Relevance.of_directions(pairs, pairs), "i2t", settings.block_megabytes
            )
            for side, pairs in zip(vectors, (right.images, right.captions), strict=True)
        ]
        drawn = right.across.drawn_with[every[1].query]
        within = Fold(
            Ranked(every[0].best(), every[0].query),
            Ranked(every[1].best(), drawn),
            system.scores.shape[0],
        )
        same = as_dict(with_intervals(metrics, [within], settings.resamples, settings.seed))
        for task, way in (("i2i", "i2t"), ("t2t", "t2i")):
            found[task], found["interval"][task] = same[way], same["interval"][way]
    return found


def _vectors(system: System) -> tuple[Any, Any] | None:
    """The vectors behind the scores; None if there are none, as for ensembles."""
    return vectors_of(system.scores) or (
        (system.vectors("image"), system.vectors("caption")) if system.has_vectors() else None
    )


def query_table(every: Sequence[Measured], name: str = "") -> "pd.DataFrame":
    """A row for each query of one system by each protocol: its rank, ties and hits."""
    import pandas as pd

    tables, start = [], f"{name} " if name else ""
    ranked = [
        (part, found, len(result.ranked) > 1) for result in every for part, found in result.ranked
    ]
    for part, found, divided in ranked:
        pool, said = part.system, {"language": part.language} if divided else {}
        owner = pool.caption_image if pool.relevance is None else pool.relevance.owner
        cut = part.rules.parts(owner, pool.shape[0])
        for fold, (ranks, (images, captions)) in enumerate(zip(found.ranks, cut, strict=True)):
            for way, queries, places, ids in (
                ("i2t", ranks.i2t, images, pool.image_ids),
                ("t2i", ranks.t2i, captions, pool.caption_ids),
            ):
                tables.append(
                    pd.DataFrame(
                        {
                            "protocol": found.protocol,
                            **said,
                            "direction": way,
                            "fold": fold,
                            "query": ids[places[queries.query]],
                            f"{start}rank": queries.ranks(found.ties),
                            f"{start}tied": queries.equal,
                            **{f"{start}R@{k}": queries.hits(k, found.ties) for k in RECALLS},
                        }
                    )
                )
    return pd.concat(tables, ignore_index=True)


def write_query_tables(path: Path, tables: "list[pd.DataFrame]") -> None:
    """Write the systems' tables side by side, by query."""
    whole = tables[0]
    for other in tables[1:]:
        whole = whole.merge(
            other, how="outer", on=[key for key in KEYS if key in whole], sort=False
        )
    with atomic.replacing(path) as partial:
        if path.suffix == ".parquet":
            whole.to_parquet(partial, index=False)
        else:
            whole.rename(columns=results.cell).to_csv(partial, index=False)
