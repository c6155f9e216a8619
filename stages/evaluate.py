"""Measure R@K and RSUM."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from pipeline import manifest
from pipeline.evaluation.judgements import qrels
from pipeline.evaluation.metrics import parse_all
from pipeline.evaluation.retrieval import Lists, Protocol, Ties, protocol, relevance, workers
from pipeline.files import outputs
from pipeline.files.atomic import creating, exclusive, write_json
from pipeline.parts.errors import InputError, counted
from pipeline.provenance import results
from pipeline.provenance.results import Distractors, EvaluateRequest, Result
from pipeline.report import evaluated, latex, markdown, model_index, rows
from pipeline.report.comma_separated import to_csv
from pipeline.report.fitting import Paper
from pipeline.settings import Evaluate, Settings
from pipeline.settings.paths import Paths
from pipeline.systems.scores import judged, measured, runs
from pipeline.systems.scores.foreign import open_system
from pipeline.systems.scores.made import Made
from pipeline.systems.scores.system import System
from stages import scored_systems, terminal
from stages.arguments import Files, Workers
from stages.progress import Progress, say


def evaluate(
    paths: Paths,
    settings: Settings,
    systems: tuple[str, ...] = (),
    normalise: bool = False,
    distractors: tuple[Path, ...] = (),
    keep: bool = False,
    usage: Mapping[str, Any] = {},
    columns: judged.Columns = judged.Columns(),
    truth: judged.Truth = judged.Truth(),
    rules: Protocol | None = None,
    ties: Ties = "expected",
    extended: str | None = None,
    names: tuple[str, ...] = (),
    files: Files = Files(),
    scheduler: str | None = None,
    output: str = "text",
    beside: str | None = None,
) -> None:
    """Measure R@K and RSUM of the run's heads and ensembles into results/metrics.json, or of any
    files of scores.
    """
    if names:
        metrics = settings.evaluate.model_copy(
            update={"metrics": [str(metric) for metric in parse_all(names)]}
        )
        settings = settings.model_copy(update={"evaluate": metrics})
    truth = replace(truth, left_out=settings.manifest.left_out)
    if beside:
        rules = rules or protocol(rows.benchmark(beside).protocol)
        if rules.name != rows.benchmark(beside).protocol:
            raise InputError(
                f"--beside {beside} needs the protocol {rows.benchmark(beside).protocol}, received "
                f"{rules.name}; leave out --protocol and --folds"
            )
    with Workers(scheduler=scheduler).open() as executor, workers.counted_on(executor):
        asked = _Asked(paths, settings.evaluate, ties, extended, files.per_query)
        if not systems:
            _evaluate_run(asked, settings, truth, output)
            return
        plain = settings.evaluate.model_copy(
            update={"qrels": None, "same_text": None}
        )  # only the options count here
        asked = replace(asked, settings=truth.chosen(plain))
        columns, found, tables = replace(columns, usage=usage, judgements=truth.qrels), [], []
        unwritten = _Unwritten()
        if keep:
            outputs.refuse_occupied(paths.recorded)
        groups = [scored_systems.named(paths, settings, name) for name in systems]
        scored_systems.refuse_stale(paths, settings, chain(*(places for _, places in groups)))
        several = sum(len(places) for _, places in groups) > 1
        if several and (distractors or keep or files.run or files.save_qrels or files.card):
            raise InputError(
                "--distractors, --record, --run, --save-qrels and --card need one FILE alone, not seeds"
            )
        for label, series, seed, (name, root) in (
            (label, _series(label, places), *each)
            for label, places in groups
            for each in enumerate(places)
        ):
            pool = _pool(name, root, normalise, distractors, columns)
            _refuse_lists(pool, files)
            pool = replace(pool, name=label) if label and not series else pool
            by = rules or (Protocol("enlarged") if distractors else pool.protocol or "all")
            title = pool.name if several else ""
            noticed = judged.notes_of_vectors(pool)
            if beside and rules:
                noticed += _of_published(paths, pool, columns.manifest, rules)
            notes = _noted(noticed)
            measured_pool = asked.measure(pool, [by], truth, columns.manifest, title)
            pool, (numbers,), (hits,) = (
                measured_pool.pool,
                measured_pool.numbers,
                measured_pool.hits,
            )
            shown = (
                _described(pool, measured_pool.manifest)
                | numbers
                | {"notes": notes + measured_pool.notes}
            )
            shown |= {"series": series, "seed": seed} if series else {}
            found.append((pool.name if beside or output != "text" else title, shown))
            tables += measured_pool.queries
            if files.card:
                from stages import card  # and with it the templates

                with unwritten.of(files.card):
                    card.write(
                        files.card,
                        name,
                        paths,
                        measured_pool.every[0].ranked[0],
                        shown,
                        settings.evaluate,
                        measured_pool.manifest,
                    )
            if keep:
                others = [System.open_vectors(path) for path in distractors]
                with unwritten.of(paths.recorded):
                    _keep(asked, pool, others, truth, numbers, hits)
        _write_files(pool, files, tables, settings.evaluate, unwritten)
        is_table = output == "text" and len(found) > 1 and not beside
        terminal.echo(_table(found) if is_table else _written(output, settings, beside, found))
        unwritten.refuse()


def _of_published(paths: Paths, pool: System, known: Path | None, rules: Protocol) -> list[str]:
    """Note that a matrix alone names no data set; refuse scores whose card does not name the
    published rows' protocol.
    """
    name = manifest.Manifest.load(known).dataset if known else pool.made_from.dataset
    if not name:
        return [
            f"{pool.name}: published rows are of the test images of {rules.name}, and of this file only the size "
            "is known: is it of these images?"
        ]
    card = manifest.dataset(name, paths.root) if name else None
    if card and not card.is_own and rules.name not in card.protocols:
        raise InputError(
            f"{pool.name}: is of {name}, whose card does not name {rules.name}: published rows are of "
            "other images; leave out --beside"
        )
    return []


def _evaluate_run(asked: _Asked, settings: Settings, truth: judged.Truth, output: str) -> None:
    paths, unwritten = asked.paths, _Unwritten()
    outputs.refuse_occupied(paths.metrics)
    asked = replace(asked, settings=truth.chosen(settings.evaluate))
    measured_run, tables = _measure_run(asked, settings)
    if asked.per_query:
        with unwritten.of(asked.per_query):
            measured.write_query_tables(asked.per_query, tables)
    with unwritten.of(paths.metrics), exclusive(paths.metrics):
        results.write(paths.metrics, measured_run)
        # `dvc metrics show` makes a row of each file
        with creating(paths.headline) as making:
            for name, headline in results.headline(measured_run).items():
                write_json(making / f"{name}.json", headline, durable=False)
    rows = [
        (name, _of_run(name, result.made) | numbers)
        for name, result in measured_run.items()
        for numbers in result.numbers.values()
    ]
    terminal.echo(_table(rows) if output == "text" else _written(output, settings, None, rows))
    unwritten.refuse()
    if output in ("text", "verbose"):
        say(f"{paths.metrics}: {counted(len(measured_run), 'system')}", err=False)


def _table(results: evaluated.Results) -> str:
    return evaluated.to_table(results, terminal.strong, terminal.width(sys.stdout))


def _keep(
    asked: _Asked,
    pool: System,
    distractors: Sequence[System],
    truth: judged.Truth,
    numbers: dict[str, Any],
    hits: dict[str, Any],
) -> None:
    protocol, name = numbers["protocol"], results.name_beyond(pool, distractors)
    request = asked.request(name, [protocol], truth, distractors)
    results.add(
        asked.paths.recorded,
        Result.of(pool, request, {protocol: numbers}, {protocol: hits}, distractors),
    )


def _described(pool: System, known: manifest.Manifest | None) -> dict[str, Any]:
    """What a summary says of a system beside its numbers."""
    dataset = known.dataset if known else pool.made_from.dataset or None
    return {
        "system": pool.name,
        "dataset": dataset,
        "split": pool.split,
        "read_as": pool.read_as,
        "notes": [],
    }


def _of_run(name: str, made: Made) -> dict[str, Any]:
    series = None if made.seed is None else evaluated.Series(made.series, made.without_seed)
    return {
        "system": name,
        "dataset": made.dataset,
        "split": made.split,
        "read_as": "",
        "notes": [],
        "series": series,
        "seed": made.seed,
    }


def _series(label: str, files: Sequence[scored_systems.Place]) -> evaluated.Series | None:
    """What several seeds of a system are called in one row; None for one alone."""
    name = label or ", ".join(Path(text.split(":")[0]).stem for text, _ in files)
    return (
        evaluated.Series(name, ",".join(str(root / text) for text, root in files))
        if len(files) > 1
        else None
    )


def _pool(
    text: str, root: Path, normalise: bool, distractors: tuple[Path, ...], columns: judged.Columns
) -> System:
    if distractors:
        return System.open_among(root / text, [System.open_vectors(path) for path in distractors])
    pool = open_system(text, columns, normalise, root)
    scored_systems.say_read_as(text, pool)
    return pool


class _Unwritten:
    """The files that could not be written, which are named after the numbers."""

    def __init__(self) -> None:
        self.why: list[str] = []

    @contextmanager
    def of(self, place: Path) -> Iterator[None]:
        """Keep why a file cannot be written, and go on."""
        try:
            yield
        except InputError as error:
            self.why.append(str(error))
        except OSError as error:
            self.why.append(f"{error.filename or place}: {error.strerror or error}")

    def refuse(self) -> None:
        """Raise an InputError that names the files, if there are any."""
        if self.why:
            raise InputError(
                f"{'; '.join(self.why)}; the numbers above are whole; name another place, or free some "
                "space"
            )


def _refuse_lists(pool: System, files: Files) -> None:
    """Check, before anything is measured, that lists of the best are not asked for what only all
    scores tell.
    """
    if files.run and isinstance(pool.scores, Lists):
        raise InputError(
            f"--run writes the best candidates of each query, and {pool.name} is such a list"
        )
    if files.card and isinstance(pool.scores, Lists):
        raise InputError(
            f"--card shows ranks, hubs and duplicates, which the lists of {pool.name} do not tell; give "
            "scores of all pairs"
        )


def _write_files(
    pool: System, files: Files, tables: list[Any], settings: Evaluate, unwritten: _Unwritten
) -> None:
    if files.run:
        with (
            unwritten.of(files.run),
            Progress(f"write {files.run.name}", "query", sum(pool.shape)) as bar,
        ):
            runs.write(
                files.run,
                pool,
                files.top or 100,
                settings.seed,
                settings.block_megabytes,
                bar.reach,
            )
    if files.save_qrels:
        right = relevance.as_relevance(pool.truth, pool.shape)
        is_rounded = False
        with unwritten.of(files.save_qrels):
            is_rounded = qrels.write(files.save_qrels, right, pool.image_ids, pool.caption_ids)
        if is_rounded:
            say(
                f"{files.save_qrels}: grades are rounded to whole numbers from 1 up; other tools' nDCG differs"
            )
    if files.per_query:
        with unwritten.of(files.per_query):
            measured.write_query_tables(files.per_query, tables)


def _written(output: str, settings: Settings, beside: str | None, pairs: evaluated.Results) -> str:
    """Results as text, as rows of a table in LaTeX, Markdown or CSV, or as JSON: a list of systems
    and protocols.
    """
    if output == "json":
        return json.dumps(
            [
                {
                    key: value.name if isinstance(value, evaluated.Series) else value
                    for key, value in numbers.items()
                }
                for _, numbers in pairs
            ],
            indent=1,
        )
    if output in ("text", "verbose") and not beside:
        return evaluated.to_text(pairs, terminal.strong)
    if output == "model-index":
        return model_index.to_yaml(pairs)
    table, how = rows.table(pairs, beside), settings.typesetting
    if output == "text":
        return rows.to_text(table, terminal.strong)
    if output == "csv":
        return to_csv(table).rstrip("\n")
    paper = Paper(how.column_width, how.text_width, how.text_height)
    return (
        latex.to_latex(table, paper, how.table_style)
        if output == "latex"
        else markdown.to_markdown(table, paper)
    )


def _measure_run(asked: _Asked, settings: Settings) -> tuple[dict[str, Result], list[Any]]:
    """Measure the run's systems: their results, and with --per-query a table of each one's
    queries.
    """
    run, paths, entries, tables = settings.run, asked.paths, {}, []
    missing, scored = (
        scored_systems.missing(paths, settings),
        scored_systems.scored(paths, settings),
    )
    if not scored:
        raise InputError(
            f"{run.dataset}: nothing is scored on {settings.score.split}; run `pipeline score`, or "
            "`pipeline add` for scores from elsewhere"
        )
    if missing:
        say(f"not scored, and left out: {missing}")
    for name, store in scored.items():
        store.check()
        of_card = manifest.dataset(run.dataset, paths.root).protocols_of(store.split)
        truth = judged.Truth.of(asked.settings).or_of(of_card)
        truth = replace(truth, left_out=settings.manifest.left_out)
        protocols = truth.protocols([store.protocol] if store.protocol else of_card)
        measured_pool = asked.measure(store, protocols, truth, name=name)
        names = [numbers["protocol"] for numbers in measured_pool.numbers]
        entries[name] = Result.of(
            store,
            asked.request(name, names, truth),
            dict(zip(names, measured_pool.numbers, strict=True)),
            dict(zip(names, measured_pool.hits, strict=True)),
            entries=list(scored),
        )
        tables += measured_pool.queries
    return entries, tables


class _MeasuredPool(NamedTuple):
    """One pool, measured by each protocol."""

    pool: System  # with its right answers
    manifest: manifest.Manifest | None  # of its images and captions, where it is known
    every: list[measured.Measured]  # by each protocol
    numbers: list[dict[str, Any]]  # likewise, with what was left out
    hits: list[dict[str, Any]]  # of each image, likewise
    queries: list[Any]  # with --per-query a table of its queries
    notes: list[str]  # on likely mistakes


@dataclass(frozen=True)
class _Asked:
    """The options by which every pool is measured."""

    paths: Paths
    settings: Evaluate
    ties: Ties
    extended: str | None
    per_query: Path | None

    def request(
        self,
        name: str,
        protocols: Sequence[str | Protocol],
        truth: judged.Truth,
        distractors: Sequence[System] = (),
    ) -> EvaluateRequest:
        return EvaluateRequest.of(
            name,
            protocols,
            self.settings,
            truth,
            ties=self.ties,
            extended=self.extended,
            distractors=[*map(Distractors.of, distractors)],
        )

    def measure(
        self,
        pool: System,
        protocols: Sequence[str | Protocol],
        truth: judged.Truth,
        manifest_path: Path | None = None,
        name: str = "",
    ) -> _MeasuredPool:
        """Measure a pool, and print notes on likely mistakes."""
        known = pool.manifest(manifest_path, self.paths.manifest, needed=truth.needs_manifest)
        _warn_of_leak(self.paths, pool)
        pool, beyond = judged.with_languages(pool, known), {}
        if self.extended is not None:
            with Progress(f"{self.extended} {pool.name}", "query") as bar:
                beyond = measured.extend(
                    pool, self.extended, self.settings, lambda done: bar.reach(max(bar.done, done))
                )
        pool = judged.judge(pool, truth, known)
        if pool.judgements is not None:
            say(f"{truth.qrels}: read as {pool.judgements.title}")
        beyond |= judged.facts(pool, truth, known)
        every = []
        for rules in protocols:
            with Progress(
                f"rank {pool.name}", "image", measured.work(pool, rules, self.settings)
            ) as bar:
                every.append(measured.measure(pool, rules, self.ties, self.settings, bar.reach))
        tables = [measured.query_table(every, name)] if self.per_query else []
        cutoffs = judged.notes_of_cutoffs(
            pool, self.settings.metrics, max(rules.folds for rules in map(protocol, protocols))
        )
        notes = _noted(judged.notes(pool, every[0].ranked[0][1]) + cutoffs)
        return _MeasuredPool(
            pool,
            known,
            every,
            [each.numbers | beyond for each in every],
            [each.hits for each in every],
            tables,
            notes,
        )


def _noted(notes: list[str]) -> list[str]:
    say(*(f"note: {each}" for each in notes))
    return notes


def _warn_of_leak(paths: Paths, pool: System) -> None:
    """Warn if a head that was trained on another data set has seen photographs of the pool in
    training.
    """
    made = pool.made_from
    names = made.training_data, made.dataset
    if names[0] == names[1] or not pool.has_ids:
        return
    both = [paths.manifest(name) for name in names]
    if all(path.is_file() for path in both):
        from pipeline.studies.audit.collection import trained_on  # and with it pandas

        train, test = map(manifest.Manifest.load, both)
        if seen := trained_on(train, test, pool.image_ids):
            say(
                f"warning: {pool.name}: its head was trained on {len(seen):,} of these {len(pool.image_ids):,} "
                f"photographs, such as {seen[0]}: these numbers are not zero-shot. See `pipeline audit "
                f"{names[1]}:{made.split} {names[0]}:train`"
            )
