"""The papers' tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path

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
from pipeline.run.report import figures, names, tables
from pipeline.run.report.measured import MeasuredSystem, Results, read_metrics
from pipeline.run.report.tables.systems import NAME, sources, unlisted
from pipeline.run.studies import synthetic
from stages import scored_systems
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
    asked = options.chosen or (() if options.every else settings.tables)
    request = TableRequest(
        options.delta,
        options.only or how.table_rows,
        options.columns or tuple(how.table_metrics),
        options.bold or how.table_bold,
        options.letters,
    )
    measured = scored_systems.metrics(paths) if request.measured else {}
    timed = read_json(paths.throughput, "lab throughput") if paths.throughput.exists() else {}
    learned = (
        synthetic.complete_rows(read_json(paths.synthetic, "lab synthetic"))
        if paths.synthetic.exists()
        else []
    )
    beyond = (
        results.read(paths.recorded, results.COMMAND)
        if request.measured and paths.recorded.exists()
        else {}
    )
    inputs = Results(read_metrics(measured), timed, learned, read_metrics(beyond))
    built = {name: tables.TABLES.find(name)(inputs, request) for name in asked or tables.TABLES}
    left_out = (
        [name for name, table in built.items() if not any(sources(table))]
        if asked is None and measured
        else []
    )
    built = {name: table for name, table in built.items() if name not in left_out}
    paper = Paper(how.column_width, how.text_width, how.text_height)
    shown = {name: table for name, table in built.items() if table.panels}
    with updating(paths.tables, built) as making:
        for name, table in shown.items():
            source = latex.to_latex(table, paper, options.style or how.table_style)
            (making / f"{name}.tex").write_text(source, encoding="utf-8")
            (making / f"{name}.md").write_text(markdown.to_markdown(table, paper), encoding="utf-8")
        preview = latex.preview(texts(making, tables.TABLES, "tex"))
        (making / "preview.tex").write_text(preview, encoding="utf-8")
    say(
        f"{paths.tables}: "
        + (", ".join(shown) + ", each as .tex and .md" if shown else "no table has rows"),
        err=False,
    )
    if left_out:
        say(
            f"left out: {counted(len(left_out), 'table')} in which no system of the run has a row; "
            "`pipeline tables --all` writes them, too, `--table NAME` one alone",
            err=False,
        )
    if empty := [name for name in built if name not in shown]:
        say(f"left out, without rows: {', '.join(empty)}", err=False)
    if not options.chosen:
        for name, why in unlisted(inputs, built):
            say(
                f"{name}: in none of these papers' tables: {why}"
                + (f"; {NAME}.md has it" if NAME in shown else ""),
                err=False,
            )


def draw_figures(paths: Paths, settings: Settings, options: FiguresOptions) -> None:
    """Draw the settings' figures as PDF, SVG and PNG, each with its numbers as CSV and a float for
    LaTeX.
    """
    run, unreadable = settings.run, list[str]()
    stores = {feature: paths.features(run.dataset, feature) for feature in FEATURES}
    items = {
        feature: read_header(path)[0].items for feature, path in stores.items() if path.exists()
    }
    timed = read_json(paths.throughput, "lab throughput") if paths.throughput.exists() else {}
    trained = read_heads(paths.head(run.dataset, ""), heads(run), unreadable.append)
    title = names.NAMES["datasets"].get(
        run.dataset, manifest.dataset(run.dataset, paths.root).title
    )
    evidence = figures.FigureInputs(
        title,
        trained,
        items,
        timed,
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
            (making / f"{name}.tex").write_text(
                latex.figure(name, drawing.caption, drawing.wide), encoding="utf-8"
            )
            (making / f"{name}.md").write_text(figures.section(name, drawing), encoding="utf-8")
        preview = latex.preview(texts(making, figures.FIGURES, "tex"))
        (making / "preview.tex").write_text(preview, encoding="utf-8")
        index = figures.index(texts(making, figures.FIGURES, "md"), lacking)
        (making / "index.md").write_text(index, encoding="utf-8")


def _measured(paths: Paths, settings: Settings) -> tuple[tuple[MeasuredSystem, ...], int]:
    """The systems on the run's data set, by the first system's protocol, and the number of training
    images.
    """
    if not paths.metrics.exists() or not {"training_images", "half_size"} & set(settings.figures):
        return (), 0
    systems = [
        system
        for system in read_metrics(scored_systems.metrics(paths))
        if system.origin.dataset == settings.run.dataset
    ]
    first = tuple(
        system for system in systems if system.origin.protocol == systems[0].origin.protocol
    )
    split = manifest.Manifest.load(paths.manifest(settings.run.dataset)).images["split"]
    return first, int((split == "train").sum())


def _gallery(paths: Paths, settings: Settings, images: Path | None) -> scored_systems.Gallery | str:
    """The system with most features of the first recipe, text encoder and seed with scores; or what
    is missing.
    """
    ensembles = scored_systems.first(settings, scored_systems.scored(paths, settings))
    metrics = scored_systems.metrics(paths) if paths.metrics.exists() else {}
    if not ensembles:
        return (
            f"a scored system of the run ({scored_systems.run_summary(settings)}): run `pipeline score` and "
            "`pipeline ensemble`"
        )
    if not (folder := scored_systems.photographs(paths, settings, images)).is_dir():
        return (
            f"the photographs, and {folder} is no folder: name it with `pipeline figures --images`"
        )
    widest = max(ensembles, key=lambda visual: len(of_ensemble(visual)))
    return scored_systems.galleries(
        paths,
        settings,
        {widest: ensembles[widest]},
        images,
        scored_systems.truth(paths, settings, metrics),
    )[widest]
