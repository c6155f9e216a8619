"""What of the run is scored, all of one state of things, and the photographs that it is shown with."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import click

from pipeline.manifest import Manifest
from pipeline.provenance import record, results
from pipeline.report.examples import Gallery
from pipeline.scores.similarity_store import SimilarityStore
from pipeline.settings import Settings
from stages.paths import Paths, system, systems


def stores(paths: Paths, settings: Settings, metrics: Mapping[str, Any]) -> dict[str, SimilarityStore]:
    """The run's systems that are scored, by name.

    metrics: the parsed results/metrics.json. Raises InputError where scores, heads and metrics are of different states.
    """
    dataset = settings.run.dataset
    found = {name: SimilarityStore.open(path) for name in systems(settings.run)
             if (path := paths.similarity(dataset, name)).exists()}
    if found:
        record.refuse_stale(found, lambda head: paths.head(dataset, head))
    older = results.refuse_edited(paths.metrics, metrics, paths.similarity)
    if unknown := results.not_recorded(paths.metrics, older):
        click.echo(unknown, err=True)
    return found


def first(settings: Settings, found: Mapping[str, SimilarityStore]) -> dict[str, SimilarityStore]:
    """By ensemble or feature, ensembles first: the run's first recipe, text encoder and seed with any; {} for none."""
    run = settings.run
    for recipe, text, seed in product(run.recipes, run.texts, run.seeds):
        every = {visual: system(recipe, visual, text, seed) for visual in (*run.ensembles, *run.features)}
        if there := {visual: found[name] for visual, name in every.items() if name in found}:
            return there
    return {}


def run_summary(settings: Settings) -> str:
    """The run in words, for a reader who misses its scores."""
    run = settings.run
    return (f"recipe {', '.join(run.recipes)}; text encoder {', '.join(run.texts)}; "
            f"seed {', '.join(map(str, run.seeds))}")


def photographs(paths: Paths, settings: Settings, given: Path | None) -> Path:
    """The folder of the run's photographs; it may not be there."""
    return given or Manifest.load(paths.manifest(settings.run.dataset)).images_folder


def galleries(paths: Paths, settings: Settings, shown: Mapping[str, SimilarityStore], given: Path | None
              ) -> dict[str, Gallery]:
    """The systems with their captions and photographs."""
    if not shown:
        return {}
    manifest, folder = Manifest.load(paths.manifest(settings.run.dataset)), photographs(paths, settings, given)
    return {visual: Gallery.of(store.check(), manifest, folder) for visual, store in shown.items()}
