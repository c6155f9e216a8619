"""The papers' tables and figures."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from pipeline.foundation import manifest
from pipeline.foundation.files.results import read_json, texts, updating
from pipeline.foundation.parts.errors import InputError, counted, unknown
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.features import FEATURES, of_ensemble
from pipeline.foundation.settings.paths import Paths, heads
from pipeline.judge.tables import latex, markdown
from pipeline.judge.tables.fitting import Paper
from pipeline.judge.tables.table import TableRequest
from pipeline.make.features.store.layout import read_header
from pipeline.run.provenance import results
from pipeline.run.provenance.heads import read_heads
from pipeline.run.provenance.results import Result
from pipeline.run.report import figures, names, tables
from pipeline.run.report.measured import MeasuredSystem, Results, read_metrics
from pipeline.run.report.tables.systems import NAME, sources, unlisted
from pipeline.run.studies import synthetic
from stages import declared, missing_rows, scored_systems
from stages.commands.paper import FiguresOptions, TablesOptions
from stages.progress import Progress, say


def write_tables(paths: Paths, settings: Settings, options: TablesOptions) -> None:
    """Write tables, by default those with a row of the run's systems, as LaTeX and Markdown."""
    how = settings.typesetting
    if options.every and options.chosen:
        raise InputError("--all writes every table, --table those that it names; give one")
    for name in options.chosen:
        if name not in tables.TABLES:
            raise InputError(
                f"{unknown('table', name, tables.TABLES)} (all: {', '.join(tables.TABLES)})"
            )
    asked: Collection[str] | None = options.chosen
    if not asked:
        asked = settings.tables
    if options.every:
        asked = ()
    request = TableRequest(
        options.delta,
        options.only or how.table_rows,
        options.columns or tuple(how.table_metrics),
        options.letters,
    )
    inputs = _results(paths, request)
    considered = {}
    left_out = []
    for name in asked or tables.TABLES:
        considered[name] = tables.TABLES.find(name)(inputs, request)
        if asked is None and inputs.systems and not any(sources(considered[name])):
            left_out.append(name)
    built = {name: table for name, table in considered.items() if name not in left_out}
    paper = Paper(how.column_width, how.text_width, how.text_height)
    style = options.style or how.table_style
    shown = {name: table for name, table in built.items() if table.panels}
    with updating(paths.tables, built) as making:
        for name, table in shown.items():
            source = latex.to_latex(table, paper, style)
            (making / f"{name}.tex").write_text(source, encoding="utf-8")
            text = markdown.to_markdown(table, paper)
            (making / f"{name}.md").write_text(text, encoding="utf-8")
        preview = latex.preview(texts(making, tables.TABLES, "tex"))
        (making / "preview.tex").write_text(preview, encoding="utf-8")
    written = "no table has rows"
    if shown:
        written = f"{', '.join(shown)}, each as .tex and .md"
    say(f"{paths.tables}: {written}", err=False)
    if left_out:
        say(
            f"left out: {counted(len(left_out), 'table')} in which no system of the run has a row; "
            "`pipeline tables --all` writes them, too, `--table NAME` one alone",
            err=False,
        )
    empty = [name for name in built if name not in shown]
    if empty:
        say(f"left out, without rows: {', '.join(empty)}", err=False)
    if request.measured and declared.settings_file(paths.root):
        lacking = missing_rows.missing(considered, inputs, settings, paths)
        for advice, rows_of_tables in lacking.items():
            say(f"rows not measured yet; {advice}:", err=False)
            for name, rows in rows_of_tables.items():
                say(f"  {name}: {', '.join(rows)}", err=False)
    if not options.chosen:
        elsewhere = ""
        if NAME in shown:
            elsewhere = f"; {NAME}.md has it"
        for name, why in unlisted(inputs, built):
            say(f"{name}: in none of these papers' tables: {why}{elsewhere}", err=False)


def _results(paths: Paths, request: TableRequest) -> Results:
    """What was measured, timed and learned, of which tables are made."""
    measured: Mapping[str, Result] = {}
    beyond: Mapping[str, Result] = {}
    if request.measured:
        measured = scored_systems.metrics(paths)
        if paths.recorded.exists():
            beyond = results.read(paths.recorded, results.COMMAND)
    learned = []
    if paths.synthetic.exists():
        learned = synthetic.complete_rows(read_json(paths.synthetic, "lab synthetic"))
    return Results(read_metrics(measured), _times(paths), learned, read_metrics(beyond))


def _times(paths: Paths) -> dict[str, Any]:
    """The times of results/throughput.json, where they were measured."""
    if not paths.throughput.exists():
        return {}
    return read_json(paths.throughput, "lab throughput")


def draw_figures(paths: Paths, settings: Settings, options: FiguresOptions) -> None:
    """Draw the settings' figures as PDF, SVG and PNG, each with its numbers as CSV and a float for
    LaTeX.
    """
    run = settings.run
    unreadable: list[str] = []
    items = {}
    for feature in FEATURES:
        store = paths.features(run.dataset, feature)
        if store.exists():
            header, *_ = read_header(store)
            items[feature] = header.items
    trained = read_heads(paths.head(run.dataset, ""), heads(run), unreadable.append)
    card = manifest.dataset(run.dataset, paths.root)
    title = names.NAMES["datasets"].get(run.dataset, card.title)
    evidence = figures.FigureInputs(
        title,
        trained,
        items,
        _times(paths),
        _gallery(paths, settings, options.images),
        list(product(run.recipes, run.texts, run.seeds)),
        *_measured(paths, settings),
    )
    drawn: dict[str, figures.Drawing] = {}
    font = settings.typesetting.figure_font
    lacking: dict[str, str] = {}
    with Progress("figures", "figure", len(settings.figures)) as bar:
        for name in settings.figures:
            try:
                drawn[name] = figures.draw(name, evidence, font)
            except figures.MissingInputs as lack:
                lacking[name] = str(lack)
            bar.update()
    if drawn or not paths.figures.exists():
        _write(paths.figures, drawn, lacking, font)
    say(f"{paths.figures}: {', '.join(drawn) or 'nothing new'}", err=False)
    for name, needed in lacking.items():
        say(f"{name}: left out, it needs {needed}", err=False)
    for why in unreadable:
        say(f"left out: {why}", err=False)


def _write(
    folder: Path,
    drawn: Mapping[str, figures.Drawing],
    lacking: Mapping[str, str],
    font: figures.Font,
) -> None:
    with updating(folder, {*drawn, *lacking}) as making:
        for name, drawing in drawn.items():
            figures.save(drawing, making, name, font)
            source = latex.figure(name, drawing.caption, drawing.wide)
            (making / f"{name}.tex").write_text(source, encoding="utf-8")
            (making / f"{name}.md").write_text(figures.section(name, drawing), encoding="utf-8")
        preview = latex.preview(texts(making, figures.FIGURES, "tex"))
        (making / "preview.tex").write_text(preview, encoding="utf-8")
        index = figures.index(texts(making, figures.FIGURES, "md"), lacking)
        (making / "index.md").write_text(index, encoding="utf-8")


def _measured(paths: Paths, settings: Settings) -> tuple[tuple[MeasuredSystem, ...], int]:
    """The systems on the run's data set, by the first system's protocol, and the number of training
    images.
    """
    are_drawn = {"training_images", "half_size"} & set(settings.figures)
    if not paths.metrics.exists() or not are_drawn:
        return (), 0
    dataset = settings.run.dataset
    measured = read_metrics(scored_systems.metrics(paths))
    systems = [system for system in measured if system.origin.dataset == dataset]
    protocols = [system.origin.protocol for system in systems]
    first = []
    for system, protocol in zip(systems, protocols, strict=True):
        if protocol == protocols[0]:
            first.append(system)
    split = manifest.Manifest.load(paths.manifest(dataset)).images["split"]
    return tuple(first), int((split == "train").sum())


def _gallery(paths: Paths, settings: Settings, images: Path | None) -> scored_systems.Gallery | str:
    """The system with most features of the first recipe, text encoder and seed with scores; or what
    is missing.
    """
    ensembles = scored_systems.first(settings, scored_systems.scored(paths, settings))
    metrics = {}
    if paths.metrics.exists():
        metrics = scored_systems.metrics(paths)
    if not ensembles:
        return (
            f"a scored system of the run ({scored_systems.run_summary(settings)}): run `pipeline score` and "
            "`pipeline ensemble`"
        )
    folder = scored_systems.photographs(paths, settings, images)
    if not folder.is_dir():
        return (
            f"the photographs, and {folder} is no folder: name it with `pipeline figures --images`"
        )
    widest = max(ensembles, key=lambda visual: len(of_ensemble(visual)))
    truth = scored_systems.truth(paths, settings, metrics)
    shown = {widest: ensembles[widest]}
    galleries = scored_systems.galleries(paths, settings, shown, images, truth)
    return galleries[widest]
