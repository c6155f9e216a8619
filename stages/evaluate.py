"""Measure R@K and RSUM of files of scores."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.foundation import manifest as manifests
from pipeline.foundation.evaluation.retrieval import (
    Direction,
    Lists,
    Protocol,
    protocol,
    workers,
)
from pipeline.foundation.evaluation.statistics import ImageHits
from pipeline.foundation.files import streams
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import JudgeSettings
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores import judged, measured
from pipeline.judge.systems.scores.foreign import open_system, opening
from pipeline.judge.systems.scores.system import System
from pipeline.judge.tables.bold import Contender
from pipeline.judge.tables.evaluated import Series
from stages import hits, named_systems
from stages.arguments import Workers
from stages.commands.evaluate import HITS_OF_SEVERAL, EvaluateOptions
from stages.measure import (
    Evaluation,
    MeasuredPool,
    Unwritten,
    print_numbers,
    say_notes,
    with_metrics,
)
from stages.progress import Progress, say

if TYPE_CHECKING:
    from pipeline.foundation.settings import AnySettings


@dataclass(frozen=True)
class _Row:
    """One file of scores, and the row in which its numbers are printed."""

    file: str
    root: Path
    label: str  # What the user calls the system; "" for nothing
    series: Series | None  # The system that it is a seed of
    seed: int


def evaluate(paths: Paths, settings: AnySettings, options: EvaluateOptions) -> None:
    """Measure R@K and RSUM of any files of scores, each alone; of the run if none is named."""
    if not options.files:
        from stages.evaluate_run import evaluate_run  # and with it what made the run

        assert not isinstance(settings, JudgeSettings)  # which is read where files are named
        evaluate_run(paths, settings, options)
        return
    if options.tool:
        from stages.evaluate_as import evaluate_as

        evaluate_as(paths, settings, options)
        return
    rules = options.rules
    if options.beside:
        rules = _rules_of_published(options.beside, rules)
    # Here only the options choose the right answers, not the settings.
    measuring = with_metrics(settings.evaluate, options.metrics)
    plain = measuring.model_copy(update={"qrels": None, "same_text": None})
    truth = replace(options.truth, left_out=settings.manifest.left_out)
    evaluation = Evaluation(paths, truth.chosen(plain), truth, options.ties, options.extended)
    columns = replace(options.columns, usage=options.usage, judgements=truth.qrels)
    if options.record:
        streams.refuse_occupied(paths.recorded)
    rows = _rows(paths, settings, options.files, options.dataset)
    if len(rows) > 1:
        _refuse_for_seeds(options)
    hits_files = _hits_files(rows, options)
    is_untitled = (
        options.output == "text" and not options.beside and not options.catalogue and len(rows) == 1
    )

    shown = []
    tables = []
    notes_on_systems: list[tuple[str, str]] = []
    first_seeds: dict[Series, Seed] = {}
    unwritten = Unwritten()
    with (
        Workers(scheduler=options.scheduler).open() as executor,
        workers.counted_on(executor),
    ):
        with named_systems.saying_read_as() as read_as:
            for row, hits_file in zip(rows, hits_files, strict=True):
                system = _opened(row, columns, options)
                read_as.append((row.file, system.read_as))
                by = rules or _rules_of_system(system, options)
                if row.series:
                    seed = Seed.of(system, by)
                    refuse_other_seed(seed, first_seeds.setdefault(row.series, seed))
                notes = judged.notes_of_vectors(system)
                if options.beside and rules:
                    notes += _notes_on_published(paths, system, columns.manifest, rules)
                pool = evaluation.measure(system, [by], columns.manifest)
                judgements = pool.pool.judgements
                if judgements is not None:
                    read_as.append((str(judgements.path), judgements.title))
                numbers = _described(pool) | pool.numbers[0]
                notes += pool.notes
                numbers["notes"] = notes
                notes_on_systems += [(system.name, note) for note in notes]
                if row.series:
                    numbers |= {"series": row.series, "seed": row.seed}
                contender = Contender((ImageHits(pool.hits[0]),), pool.pool.made_from.competes)
                title = pool.pool.name
                if options.per_query:
                    of_queries = ""
                    if len(rows) > 1:
                        of_queries = title
                    tables.append(measured.query_table(pool.by_protocol, of_queries))
                if is_untitled:
                    title = ""
                shown.append((title, numbers | {"contender": contender}))
                _write(pool, row, numbers, options, hits_file, evaluation, unwritten)
        if options.per_query:
            with unwritten.of(options.per_query):
                measured.write_query_tables(options.per_query, tables)
        say_notes(notes_on_systems)
        is_table = len(shown) > 1
        print_numbers(shown, options.output, settings, options.beside, is_table, options.catalogue)
        unwritten.refuse()


def _refuse_for_seeds(options: EvaluateOptions) -> None:
    """Refuse what is made of one file's scores for a file with several, such as seeds."""
    needs_one = options.distractors or options.record
    writes_one = options.run or options.save_qrels or options.card
    if needs_one or writes_one:
        raise InputError(
            "--distractors, --record, --run, --save-qrels and --card need one FILE alone, not seeds: each "
            "FILE needs a call of its own"
        )
    if options.has_one_file_of_hits:
        raise InputError(HITS_OF_SEVERAL)


def _hits_files(rows: Sequence[_Row], options: EvaluateOptions) -> list[Path | None]:
    """The file of hits of each row: what --hits names, or SYSTEM.npz in its folder."""
    if options.hits is None:
        return [None] * len(rows)
    if options.has_one_file_of_hits:
        return [options.hits]
    systems = []
    for row in rows:
        name = row.label
        if not name or row.series:
            name = opening.name_of(row.file, row.root)
        systems.append((name, row.file))
    files = hits.files(options.hits, systems)
    _refuse_measured(rows, files)
    return [*files]


def _refuse_measured(rows: Sequence[_Row], files: Sequence[Path]) -> None:
    """Check that no file of hits replaces one that is measured."""
    measured_files = set()
    for row in rows:
        if opening.model_of(row.file, row.root) is None:
            measured_files |= {
                os.path.realpath(path) for path, _ in opening.places(row.file, row.root)
            }
    for file in files:
        if os.path.realpath(file) in measured_files:
            raise InputError(
                f"--hits: {file} is one of the files that are measured; name another folder"
            )


def _opened(row: _Row, columns: judged.Columns, options: EvaluateOptions) -> System:
    """Open the file of a row."""
    if options.distractors:
        system = System.open_among(row.root / row.file, _distractor_stores(options))
    else:
        system = open_system(row.file, columns, options.normalise, row.root)
    _refuse_lists(system, options)
    _refuse_hits(system, options)
    if row.label and not row.series:
        return replace(system, name=row.label)
    return system


class Seed(NamedTuple):
    """What all seeds of a system have in common, beside the name of one."""

    name: str
    shape: tuple[int, int]
    directions: frozenset[Direction]
    protocol: str

    @classmethod
    def of(cls, system: System, by: str | Protocol = "all") -> Seed:
        """What a system ranks, and by which protocol it is measured."""
        directions: frozenset[Direction] = frozenset({"i2t", "t2i"})
        if isinstance(system.scores, Lists):
            directions = frozenset(system.scores.listed)
        if isinstance(by, Protocol):
            by = by.name
        return cls(system.name, system.shape, directions, by)


def refuse_other_seed(seed: Seed, first: Seed) -> None:
    """Check that a seed ranks as many images and captions as the first one, in the same
    directions, by the same protocol.
    """
    advice = "no mean over these seeds; name them as two systems, without a comma between"
    if seed.shape != first.shape:
        images, captions = seed.shape
        images_of_first, captions_of_first = first.shape
        raise InputError(
            f"{seed.name}: has {images:,} images x {captions:,} captions, {first.name} has "
            f"{images_of_first:,} x {captions_of_first:,}: {advice}"
        )
    if seed.directions != first.directions:
        raise InputError(
            f"{seed.name}: ranks {' and '.join(sorted(seed.directions))}, the seeds before it "
            f"{' and '.join(sorted(first.directions))}: {advice}"
        )
    if seed.protocol != first.protocol:
        raise InputError(
            f"{seed.name}: is measured by protocol {seed.protocol}, {first.name} by {first.protocol}: "
            f"{advice}"
        )


def _distractor_stores(options: EvaluateOptions) -> list[System]:
    return [System.open_vectors(path) for path in options.distractors]


def _rules_of_system(system: System, options: EvaluateOptions) -> str | Protocol:
    """The protocol where none is named: the system's own, or all in one pool."""
    if options.distractors:
        return Protocol("enlarged")
    return system.protocol or "all"


def _rules_of_published(beside: str, rules: Protocol | None) -> Protocol:
    """The protocol of the published rows that are named; another one is refused."""
    from pipeline.judge.tables import named_rows  # and with it the published tables

    named_rows.chosen(beside, "--beside")  # before any file is read
    needed = named_rows.benchmark(beside, "--beside").protocol
    rules = rules or protocol(needed)
    if rules.name != needed:
        raise InputError(
            f"--beside {beside} needs the protocol {needed}, received {rules.name}; leave out "
            "--protocol and --folds"
        )
    return rules


def _rows(
    paths: Paths, settings: AnySettings, systems: Sequence[str], dataset: str | None
) -> list[_Row]:
    """The files of all systems, those of several seeds one after another."""
    names = named_systems.expanded(paths.root, systems)
    groups = [named_systems.named(paths, settings, name, dataset) for name in names]
    named_systems.refuse_shared_titles(title for title, _ in groups)
    of_all = [*chain.from_iterable(places for _, places in groups)]
    named_systems.refuse_other_dataset(of_all, dataset)
    named_systems.refuse_stale(paths, settings, of_all, dataset)
    rows = []
    for label, places in groups:
        series = None
        if len(places) > 1:
            series = _series(label, places)
        for seed, (file, root) in enumerate(places):
            rows.append(_Row(file, root, label, series, seed))
    return rows


def _series(label: str, places: Sequence[named_systems.Place]) -> Series:
    """What several seeds of a system are called in one row."""
    stems = []
    files = []
    for text, root in places:
        stems.append(Path(text.split(":")[0]).stem)
        files.append(str(root / text))
    return Series(label or ", ".join(stems), ",".join(files))


def _notes_on_published(
    paths: Paths, pool: System, known: Path | None, rules: Protocol
) -> list[str]:
    """Note that a matrix alone names no data set; refuse scores whose card does not name the
    published rows' protocol.
    """
    name = pool.made_from.dataset
    if known:
        name = manifests.Manifest.load(known).dataset
    if not name:
        return [
            f"{pool.name}: published rows are of the test images of {rules.name}, and of this file only the size "
            "is known: check that it has the same test images"
        ]
    card = manifests.dataset(name, paths.root)
    if card and not card.is_own and rules.name not in card.protocols:
        raise InputError(
            f"{pool.name}: is of {name}, whose card does not name {rules.name}: published rows are of "
            "other images; leave out --beside"
        )
    return []


def _refuse_lists(system: System, options: EvaluateOptions) -> None:
    """Check, before anything is measured, that lists of the best are not asked for what only all
    scores tell.
    """
    if not isinstance(system.scores, Lists):
        return
    if options.run:
        raise InputError(
            f"--run writes the best candidates of each query, and {system.name} is such a list"
        )
    if options.card:
        raise InputError(
            f"--card shows ranks, hubs and duplicates, which the lists of {system.name} do not tell; give "
            "scores of all pairs"
        )
    if options.hits:
        raise InputError(
            f"--hits writes the rank of every query, which the lists of {system.name} may leave open: give scores of "
            "all pairs; or publish the lists, which `pipeline compare` and `pipeline board` read"
        )


def _refuse_hits(system: System, options: EvaluateOptions) -> None:
    """Check likewise that ranks alone are not asked for what only scores tell."""
    if system.hits and (options.run or options.card):
        raise InputError(
            f"{system.name}: is a file of hits, which holds no scores; --run and --card need the scores"
        )


def _described(pool: MeasuredPool) -> dict[str, Any]:
    """What a summary says of a system beside its numbers."""
    system = pool.pool
    name = system.dataset
    if pool.manifest:
        name = pool.manifest.dataset
    return {
        "system": system.name,
        "dataset": name or None,
        "split": system.split,
        "read_as": system.read_as,
        "sides": [*system.sides],
        "lists": measured.of_lists(pool.by_protocol[0]),
        "notes": [],
    }


def _write(
    pool: MeasuredPool,
    row: _Row,
    numbers: Mapping[str, Any],
    options: EvaluateOptions,
    hits_file: Path | None,
    evaluation: Evaluation,
    unwritten: Unwritten,
) -> None:
    """Write what is asked for beside the numbers of one pool."""
    if options.card:
        from stages import card  # and with it the templates

        with unwritten.of(options.card):
            card.write(options.card, row.file, pool, numbers, evaluation)
    if options.run:
        with unwritten.of(options.run):
            _write_run(options.run, options.top or 100, pool, evaluation)
    if options.save_qrels:
        with unwritten.of(options.save_qrels):
            _write_qrels(options.save_qrels, pool)
    if hits_file:
        scores = None
        if opening.model_of(row.file, row.root) is None:
            scores = (row.file, row.root)
        with unwritten.of(hits_file):
            hits.write(hits_file, pool, numbers["dataset"] or "", scores)
    if options.record:
        with unwritten.of(evaluation.paths.recorded):
            _record(evaluation, pool, _distractor_stores(options))


def _write_run(path: Path, top: int, pool: MeasuredPool, evaluation: Evaluation) -> None:
    from pipeline.judge.systems.scores import runs

    settings = evaluation.settings
    system = pool.pool
    with Progress(f"write {path.name}", "query", sum(system.shape)) as bar:
        runs.write(path, system, top, settings.seed, settings.block_megabytes, bar.reach)


def _write_qrels(path: Path, pool: MeasuredPool) -> None:
    from pipeline.foundation.evaluation.judgements import qrels
    from pipeline.foundation.evaluation.retrieval import relevance

    system = pool.pool
    right = relevance.as_relevance(system.truth, system.shape)
    is_rounded = qrels.write(path, right, system.image_ids, system.caption_ids)
    if is_rounded:
        say(f"{path}: grades are rounded to whole numbers from 1 up; other tools' nDCG differs")


def _record(evaluation: Evaluation, pool: MeasuredPool, distractors: Sequence[System]) -> None:
    """Write the numbers to results/recorded.json."""
    from pipeline.run.provenance import results

    numbers = pool.numbers[0]
    name = results.name_beyond(pool.pool, distractors)
    by = numbers["protocol"]
    result = results.Result.of(
        pool.pool,
        evaluation.request(name, [by], distractors),
        {by: numbers},
        {by: pool.hits[0]},
        distractors,
    )
    results.add(evaluation.paths.recorded, result)
