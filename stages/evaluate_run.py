"""Measure R@K and RSUM of the run's heads and ensembles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.foundation import manifest
from pipeline.foundation.evaluation.retrieval import workers
from pipeline.foundation.evaluation.statistics import ImageHits
from pipeline.foundation.files import streams
from pipeline.foundation.files.atomic import creating, exclusive, write_json
from pipeline.foundation.parts.errors import InputError, counted, few
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores import judged, measured
from pipeline.judge.systems.scores.made import Made
from pipeline.judge.systems.scores.system import System
from pipeline.judge.tables.bold import Contender
from pipeline.judge.tables.evaluated import Series
from pipeline.run.provenance import results
from pipeline.run.provenance.results import Result
from stages import hits, named_systems, scored_systems
from stages.arguments import Workers
from stages.commands.evaluate import EvaluateOptions
from stages.measure import (
    Evaluation,
    MeasuredPool,
    Unwritten,
    print_numbers,
    say_notes,
    with_metrics,
)
from stages.progress import say


def evaluate_run(paths: Paths, settings: Settings, options: EvaluateOptions) -> None:
    """Measure the run's systems, each by the protocols of its data set's card, into
    results/metrics.json.
    """
    streams.refuse_occupied(paths.metrics)
    if options.dataset is not None:
        run = settings.run.model_copy(update={"dataset": options.dataset})
        settings = settings.model_copy(update={"run": run})
    chosen = options.truth.chosen(with_metrics(settings.evaluate, options.metrics))
    truth = replace(judged.Truth.of(chosen), left_out=settings.manifest.left_out)
    evaluation = Evaluation(paths, chosen, truth, options.ties, options.extended)
    scored = _scored(paths, settings)
    hits_files = _hits_files(scored, options)
    card = manifest.dataset(settings.run.dataset, paths.root)
    entries = {}
    tables = []
    unwritten = Unwritten()
    notes: list[tuple[str, str]] = []
    read_as: list[tuple[str, str]] = []
    with Workers(scheduler=options.scheduler).open() as executor, workers.counted_on(executor):
        for name, store in scored.items():
            store.check()
            of_card = card.protocols_of(store.split)
            right = truth.or_of(of_card)
            rules = [store.protocol] if store.protocol else of_card
            protocols = right.protocols(rules)
            of_split = replace(evaluation, truth=right)
            pool = of_split.measure(store, protocols)
            judgements = pool.pool.judgements
            if judgements is not None:
                read_as.append((str(right.qrels), judgements.title))
            notes += [(store.name, note) for note in pool.notes]
            entries[name] = _result(of_split, name, pool, list(scored))
            if options.per_query:
                tables.append(measured.query_table(pool.by_protocol, name))
            if name in hits_files:
                with unwritten.of(hits_files[name]):
                    hits.write(hits_files[name], pool, store.dataset, (str(store.path), Path()))
                    notes += _notes_on_hits(pool, paths)

    named_systems.say_read_as(read_as)
    say_notes(notes)
    if options.per_query:
        with unwritten.of(options.per_query):
            measured.write_query_tables(options.per_query, tables)
    with unwritten.of(paths.metrics), exclusive(paths.metrics):
        _write_results(paths, entries)
    rows = []
    for name, entry in entries.items():
        described = _described(name, entry.made)
        for by, numbers in entry.numbers.items():
            contender = Contender((ImageHits(entry.hits[by]),), entry.made.competes)
            rows.append((name, described | numbers | {"contender": contender}))
    print_numbers(rows, options.output, settings, catalogue=options.catalogue)
    unwritten.refuse()
    if options.output in ("text", "verbose") and not options.catalogue:
        say(f"{paths.metrics}: {counted(len(entries), 'system')}", err=False)


def _hits_files(scored: Mapping[str, System], options: EvaluateOptions) -> dict[str, Path]:
    """The file of hits of each system, by its name; none where they are not asked for."""
    if options.hits is None:
        return {}
    files = hits.files(options.hits, [(name, name) for name in scored])
    return dict(zip(scored, files, strict=True))


def _notes_on_hits(pool: MeasuredPool, paths: Paths) -> list[tuple[str, str]]:
    """Say by which of several protocols the hits of a system are, and how those by others are
    written.
    """
    first, *others = [numbers["protocol"] for numbers in pool.numbers]
    if not others:
        return []
    system = pool.pool
    stores = system.path.parent.relative_to(paths.root) / "*.zarr"
    note = (
        f"{system.name}: its hits are by protocol {first}, the first of its data set's card; those by "
        f"{' and '.join(others)}, in a folder of their own: `pipeline evaluate '{stores}' --protocol {others[0]} "
        "--hits FOLDER/`"
    )
    return [(system.name, note)]


def _scored(paths: Paths, settings: Settings) -> dict[str, System]:
    """The run's systems that are scored, each under one name; say which are not."""
    missing = scored_systems.missing(paths, settings)
    scored = scored_systems.scored(paths, settings)
    if not scored:
        elsewhere = scored_systems.of_other_data(paths, settings)
        if elsewhere:
            folder = scored_systems.folder_of_stores(paths, settings).relative_to(paths.root)
            raise InputError(
                f"{settings.run.dataset}: all that is scored on {settings.score.split} is of heads trained on "
                f"{' and '.join(elsewhere)}; name it: `pipeline evaluate '{folder}/*.zarr'`"
            )
        raise InputError(
            f"{settings.run.dataset}: nothing is scored on {settings.score.split}; run `pipeline "
            "score`, or `pipeline add` for scores from elsewhere"
        )
    if missing:
        say(f"not scored, and left out: {missing}")
    second_names = scored_systems.twice(scored)
    if second_names:
        same = [f"{name} is {ensemble}" for name, ensemble in second_names.items()]
        say(f"one system under two names has one row: {few(same)}")
    for name in second_names:
        scored[name].check()
    return {name: system for name, system in scored.items() if name not in second_names}


def _result(evaluation: Evaluation, name: str, pool: MeasuredPool, entries: list[str]) -> Result:
    """A system's entry in results/metrics.json."""
    protocols = [numbers["protocol"] for numbers in pool.numbers]
    return Result.of(
        pool.pool,
        evaluation.request(name, protocols),
        dict(zip(protocols, pool.numbers, strict=True)),
        dict(zip(protocols, pool.hits, strict=True)),
        entries=entries,
    )


def _write_results(paths: Paths, entries: dict[str, Result]) -> None:
    results.write(paths.metrics, entries)
    # `dvc metrics show` makes a row of each file
    with creating(paths.headline) as folder:
        for name, headline in results.headline(entries).items():
            write_json(folder / f"{name}.json", headline, durable=False)


def _described(name: str, made: Made) -> dict[str, Any]:
    """What a summary says of a system beside its numbers."""
    series = None
    if made.seed is not None:
        series = Series(made.series, made.without_seed)
    return {
        "system": name,
        "dataset": made.dataset,
        "split": made.split,
        "read_as": "",
        "notes": [],
        "series": series,
        "seed": made.seed,
    }
