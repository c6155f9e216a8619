"""Draw the papers' figures."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.settings.features import FEATURES, of_ensemble
from pipeline.settings.paths import Paths, heads
from stages import options
from stages.progress import Progress

if TYPE_CHECKING:

    from pipeline import manifest
    from pipeline.features.store.layout import read_header
    from pipeline.files.results import read_json, texts, updating
    from pipeline.report import figures, latex, names
    from pipeline.report.examples import Gallery
    from pipeline.report.heads import read_heads
    from pipeline.report.measured import MeasuredSystem, read_metrics
    from pipeline.settings import Settings
    from stages import scored_systems


@click.command
@options.images
@options.with_settings
def command(paths: Paths, settings: Settings, images: Path | None) -> None:
    r"""Draw the settings' figures as PDF, SVG and PNG, each with its numbers as CSV and a float for \input.

    A figure whose inputs are not there is left out, and said so here and in results/figures/index.md. What was drawn
    before stays where it is not asked for, or where no figure can be drawn.

    Example: pipeline figures
    """
    evidence, unreadable = _gather(paths, settings, images)
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
    click.echo(f"{paths.figures}: {', '.join(drawn) or 'nothing new'}")
    for name, needed in lacking.items():
        click.echo(f"{name}: left out, it needs {needed}")
    for why in unreadable:
        click.echo(f"left out: {why}")


def _write(folder: Path, drawn: Mapping[str, figures.Drawing], lacking: Mapping[str, str], font: figures.Font) -> None:
    """Every figure's files, and of all in the folder a page and a document."""
    with updating(folder, {*drawn, *lacking}) as making:
        for name, drawing in drawn.items():
            figures.save(drawing, making, name, font)
            (making / f"{name}.tex").write_text(latex.figure(name, drawing.caption, drawing.wide), encoding="utf-8")
            (making / f"{name}.md").write_text(figures.section(name, drawing), encoding="utf-8")
        preview = latex.preview(texts(making, figures.FIGURES, "tex"))
        (making / "preview.tex").write_text(preview, encoding="utf-8")
        index = figures.index(texts(making, figures.FIGURES, "md"), lacking)
        (making / "index.md").write_text(index, encoding="utf-8")


def _gather(paths: Paths, settings: Settings, images: Path | None) -> tuple[figures.FigureInputs, list[str]]:
    """Everything that figures are drawn from, as far as it is there, and why some heads were left out."""
    run = settings.run
    unreadable: list[str] = []
    stores = {feature: paths.features(run.dataset, feature) for feature in FEATURES}
    items = {feature: read_header(path)[0].items for feature, path in stores.items() if path.exists()}
    timed = read_json(paths.throughput, "throughput") if paths.throughput.exists() else {}
    trained = read_heads(paths.head(run.dataset, ""), heads(run), unreadable.append)
    title = names.NAMES["datasets"].get(run.dataset, manifest.dataset(run.dataset, paths.root).title)
    return figures.FigureInputs(title, trained, items, timed, _gallery(paths, settings, images),
                            list(product(run.recipes, run.texts, run.seeds)), *_measured(paths, settings)), unreadable


def _measured(paths: Paths, settings: Settings) -> tuple[tuple[MeasuredSystem, ...], int]:
    """The systems on the run's data set by the first protocol of all, and how many images there are to train on."""
    if not paths.metrics.exists() or not {"training_images", "half_size"} & set(settings.figures):
        return (), 0
    systems = [system for system in read_metrics(read_json(paths.metrics, "evaluate"))
               if system.origin.dataset == settings.run.dataset]
    first = tuple(system for system in systems if system.origin.protocol == systems[0].origin.protocol)
    split = manifest.Manifest.load(paths.manifest(settings.run.dataset)).images["split"]
    return first, int((split == "train").sum())


def _gallery(paths: Paths, settings: Settings, images: Path | None) -> Gallery | str:
    """The widest system of the run's first recipe, text encoder and seed with any, or why there is none to show."""
    there = scored_systems.first(settings, scored_systems.scored(paths, settings))
    metrics = scored_systems.metrics(paths) if paths.metrics.exists() else {}
    if not there:
        return (f"a scored system of the run ({scored_systems.run_summary(settings)}): run `pipeline score` and "
                "`pipeline ensemble`")
    if not (folder := scored_systems.photographs(paths, settings, images)).is_dir():
        return f"the photographs, and {folder} is no folder: name it with `pipeline figures --images`"
    widest = max(there, key=lambda visual: len(of_ensemble(visual)))
    return scored_systems.galleries(paths, settings, {widest: there[widest]}, images,
                                    scored_systems.truth(paths, settings, metrics))[widest]
