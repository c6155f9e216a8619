"""Write the page of results."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import click
from tqdm import tqdm

from pipeline import lineage, manifest
from pipeline.errors import InputError
from pipeline.manifest import Manifest
from pipeline.report import names, page
from pipeline.report.examples import Gallery
from pipeline.report.files import read_json
from pipeline.report.heads import FEATURES, read_heads
from pipeline.report.page import charts, explorer, headline, members, stores
from pipeline.settings import Settings
from pipeline.similarity_store import SimilarityStore
from stages import options
from stages.layout import ENSEMBLES, Layout, system


@click.command
@click.option("--images", type=click.Path(path_type=Path), show_default="as in the manifest",
              help="Where the image files lie.")
@options.with_settings
def command(layout: Layout, settings: Settings, images: Path | None) -> None:
    """Write results/report.html: results with intervals, curves, what members add, queries, failures, provenance.

    One file that opens from disk, without network. What is not made yet is said in its place.

    Example: pipeline report -S report.queries=200
    """
    with tqdm(desc="report", unit="step", leave=False) as bar:
        def progress(what: str) -> None:
            bar.set_postfix_str(what, refresh=False)
            bar.update()

        text = page.render(_contents(layout, settings, images, progress))
    layout.report.parent.mkdir(parents=True, exist_ok=True)
    partial = layout.report.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(layout.report)
    click.echo(f"{layout.report}: {len(text.encode()) / 1e6:.1f} MB")


def _contents(layout: Layout, settings: Settings, images: Path | None,
              progress: Callable[[str], object]) -> page.Contents:
    """Everything on the page, as far as it is there."""
    dataset = settings.run.dataset
    card = manifest.dataset(dataset)
    metrics = read_json(layout.metrics, "evaluate") if layout.metrics.exists() else {}
    heads = read_heads(layout.head(dataset, ""))
    ours = set(_names(settings, FEATURES))
    features = {feature: path for feature in FEATURES if (path := layout.features(dataset, feature)).exists()}
    scored = {name: path for name in _names(settings, (*FEATURES, *ENSEMBLES))
              if (path := layout.similarity(dataset, name)).exists()}
    _refuse_stale(layout, settings, metrics, scored)
    return page.Contents(
        title=card.title, about=card.description, licence=card.licence,
        headlines=headline.headlines(metrics),
        curves=charts.curves([head for head in heads if head.name in ours]),
        further_curves=charts.curves([head for head in heads if head.name not in ours]),
        effects=members.effects(_ensembles(settings, scored), _protocol(settings, card), settings.evaluate, progress),
        explorer=_explorer(layout, settings, scored, images, progress),
        failures=stores.failures(features), stores=list(features),
        provenance=_provenance(layout, settings, card, features, metrics, {
            head.name: head.description for head in heads if head.name in ours}))


def _refuse_stale(layout: Layout, settings: Settings, metrics: dict[str, Any], scored: dict[str, Path]) -> None:
    """Raises InputError where the parts of the page would be of different states of things."""
    opened = {name: SimilarityStore.open(path) for name, path in scored.items()}
    if opened:
        lineage.refuse_stale(opened, lambda head: layout.head(settings.run.dataset, head))
    for name, store in opened.items():
        if name in metrics and metrics[name].get("made_from") != store.made_from:
            raise InputError(f"{layout.metrics}: {name} was scored again since; run `pipeline evaluate`")


def _names(settings: Settings, visual: tuple[str, ...]) -> list[str]:
    """The run's systems of these features and ensembles."""
    run = settings.run
    return [system(recipe, each, text, seed) for recipe, text, seed, each in product(
        run.recipes, run.texts, run.seeds, visual)]


def _ensembles(settings: Settings, scored: dict[str, Path]) -> dict[str, dict[str, Path]]:
    """The run's ensembles whose members are all scored, of its first seed: name -> feature -> similarity store."""
    run, found = settings.run, {}
    for recipe, text, (name, features) in product(run.recipes, run.texts, ENSEMBLES.items()):
        members_ = {feature: system(recipe, feature, text, run.seeds[0]) for feature in features}
        if set(members_.values()) <= scored.keys():
            title = f"{names.features(name)}: {names.method(recipe)}, {names.encoder(text)}, seed {run.seeds[0]}"
            found[title] = {part: scored[of] for part, of in members_.items()}
    return found


def _protocol(settings: Settings, card: manifest.Dataset) -> str:
    """The first protocol of the data set's card; its rules are the test split's."""
    return card.protocols[0] if settings.score.split == "test" else "all"


def _explorer(layout: Layout, settings: Settings, scored: dict[str, Path], images: Path | None,
              progress: Callable[[str], object]) -> dict[str, Any]:
    """The run's ensembles, or its single heads where it has none, of its first recipe, text encoder and seed."""
    run = settings.run
    names = {visual: system(run.recipes[0], visual, run.texts[0], run.seeds[0]) for visual in (*ENSEMBLES, *FEATURES)}
    there = {visual: scored[name] for visual, name in names.items() if name in scored}
    shown = {visual: path for visual, path in there.items() if visual in ENSEMBLES} or there
    if not shown:
        return {}
    table = Manifest.load(layout.manifest(run.dataset))
    galleries = {visual: Gallery.of(SimilarityStore.open(path), table, images or table.images_folder)
                 for visual, path in shown.items()}
    return explorer.gather(galleries, settings.report, progress)


def _provenance(layout: Layout, settings: Settings, card: manifest.Dataset, features: dict[str, Path],
                metrics: dict[str, Any], heads: dict[str, Any]) -> dict[str, Any]:
    run = settings.run
    table = layout.manifest(run.dataset)
    data = card.model_dump() | ({"manifest digest": Manifest.load(table).digest} if table.exists() else {})
    used = settings.model_dump(include={"run", "extract", "score", "evaluate", "report"}) | {
        "features": {name: settings.features[name].model_dump() for name in run.features if name in settings.features},
        "recipes": {name: settings.recipe(name).model_dump() for name in run.recipes},
        "training": settings.training_of(run.dataset).model_dump()}
    return {"Data": data, "Settings of the run": used,
            **{f"Features: {name}": stores.made_from(path) for name, path in features.items()},
            **{f"Head: {name}": description for name, description in heads.items()},
            **{f"System: {name}": entry["made_from"] for name, entry in metrics.items()}}
