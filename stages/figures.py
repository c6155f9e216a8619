"""Draw the papers' figures."""

from __future__ import annotations

from pathlib import Path

import click
from tqdm import tqdm

from pipeline import manifest
from pipeline.manifest import Manifest
from pipeline.report import figures, latex, names
from pipeline.report.examples import Gallery
from pipeline.report.files import read_json, replacing
from pipeline.report.heads import FEATURES, read_heads
from pipeline.settings import Settings
from pipeline.similarity_store import SimilarityStore
from pipeline.store.layout import describe
from stages import options
from stages.layout import ENSEMBLES, Layout, system


@click.command
@click.option("--images", type=click.Path(path_type=Path), show_default="as in the manifest",
              help="Where the image files lie.")
@options.with_settings
def command(layout: Layout, settings: Settings, images: Path | None) -> None:
    r"""Draw the settings' figures as PDF, SVG and PNG, each with its numbers as CSV and a float for \input.

    A figure whose inputs are not there is left out, and said so here and in results/figures/index.md.

    Example: pipeline figures
    """
    evidence = _gather(layout, settings, images)
    drawn: dict[str, figures.Drawing] = {}
    lacking: dict[str, str] = {}
    with replacing(layout.figures) as making:
        for name in tqdm(settings.figures, unit="figure", desc="figures", leave=False):
            try:
                drawn[name] = figures.draw(name, evidence)
                figures.save(drawn[name], making, name)
            except figures.Lacking as lack:
                lacking[name] = str(lack)
        floats = {name: latex.figure(name, drawing.caption, drawing.wide) for name, drawing in drawn.items()}
        for name, source in floats.items():
            (making / f"{name}.tex").write_text(source, encoding="utf-8")
        (making / "preview.tex").write_text(latex.preview(floats.values(), columns=2), encoding="utf-8")
        (making / "index.md").write_text(figures.index(drawn, lacking), encoding="utf-8")
    click.echo(f"{layout.figures}: {', '.join(drawn) or 'none'}")
    for name, needed in lacking.items():
        click.echo(f"{name}: left out, it needs {needed}")


def _gather(layout: Layout, settings: Settings, images: Path | None) -> figures.Evidence:
    """Everything that figures are drawn from, as far as it is there."""
    dataset = settings.run.dataset
    stores = {feature: layout.features(dataset, feature) for feature in FEATURES}
    items = {feature: describe(path)[0].items for feature, path in stores.items() if path.exists()}
    timed = read_json(layout.throughput, "throughput") if layout.throughput.exists() else {}
    title = names.DATASETS.get(dataset, manifest.dataset(dataset).title)
    return figures.Evidence(title, read_heads(layout.head(dataset, "")), items, timed,
                            _gallery(layout, settings, images))


def _gallery(layout: Layout, settings: Settings, images: Path | None) -> Gallery | None:
    """The run's widest system that is scored, of its first recipe, text encoder and seed."""
    run = settings.run
    for visual in (*reversed(ENSEMBLES), *FEATURES):
        path = layout.similarity(run.dataset, system(run.recipes[0], visual, run.texts[0], run.seeds[0]))
        if path.exists():
            table = Manifest.load(layout.manifest(run.dataset))
            folder = images or table.images_folder
            return Gallery.of(SimilarityStore.open(path), table, folder) if folder.is_dir() else None
    return None
