"""The run's scored systems, checked to belong together, and the photographs that are shown with them."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import click

from pipeline.manifest import Manifest, dataset
from pipeline.parts.errors import InputError
from pipeline.provenance import record, results
from pipeline.report.examples import Gallery
from pipeline.settings import Settings
from pipeline.settings.paths import Paths, system, systems
from pipeline.systems.scores.judged import Truth
from pipeline.systems.scores.system import System
from stages import by_hand


def stores(paths: Paths, settings: Settings, metrics: Mapping[str, Any]) -> dict[str, System]:
    """Open the similarities of the run's scored systems, and of those beside them.

    Args:
        paths: Where files lie.
        settings: The run.
        metrics: The content of results/metrics.json.

    Returns:
        Name -> store.

    Raises:
        InputError: If scores, heads and metrics do not belong together.
    """
    dataset, split = settings.run.dataset, settings.score.split
    found = {name: System.open(path) for name in systems(settings.run)
             if (path := paths.similarity(dataset, name, split)).exists()}
    if found:
        record.refuse_stale(found, lambda head: paths.head(dataset, head))
        found |= by_hand.found(paths, settings, found)
    older = results.refuse_edited(paths.metrics, metrics, paths.similarity)
    if unknown := results.not_recorded(paths.metrics, older):
        click.echo(unknown, err=True)
    return found


def first(settings: Settings, found: Mapping[str, System]) -> dict[str, System]:
    """Choose the run's first recipe, text encoder and seed with scored systems.

    Args:
        settings: The run.
        found: Name -> store.

    Returns:
        Ensemble or feature -> store, ensembles first; {} if nothing is scored.
    """
    run = settings.run
    for recipe, text, seed in product(run.recipes, run.texts, run.seeds):
        every = {visual: system(recipe, visual, text, seed) for visual in (*run.ensembles, *run.features)}
        if there := {visual: found[name] for visual, name in every.items() if name in found}:
            return there
    return {}


def run_summary(settings: Settings) -> str:
    """Describe the run, for a message that its scores are missing.

    Args:
        settings: The run.

    Returns:
        Recipes, text encoders and seeds in words.
    """
    run = settings.run
    return (f"recipe {', '.join(run.recipes)}; text encoder {', '.join(run.texts)}; "
            f"seed {', '.join(map(str, run.seeds))}")


def photographs(paths: Paths, settings: Settings, given: Path | None) -> Path:
    """Choose the folder of the run's photographs.

    Args:
        paths: Where files lie.
        settings: The run.
        given: The user's choice; None for the manifest's folder.

    Returns:
        The folder; it may not exist.
    """
    return given or Manifest.load(paths.manifest(settings.run.dataset)).images_folder


def truth(paths: Paths, settings: Settings, metrics: Mapping[str, Any]) -> Truth:
    """The right answers by which results/metrics.json was measured; without it, those by which it would be.

    Raises:
        InputError: If the file of judgements is another one now.
    """
    measured = next(iter(metrics.values()), None)
    if measured is None:
        of_test = settings.score.split == "test"
        return Truth.of(settings.evaluate).or_of(
            dataset(settings.run.dataset, paths.root).protocols if of_test else ["all"])
    numbers, how = results.protocols(measured), measured.get("evaluated_with") or {}
    found = Truth(Path(how["qrels"]) if how.get("qrels") else None, how.get("same_text") is not None).or_of(
        list(numbers))
    recorded = next(iter(numbers.values())).get("relevance", {}).get("digest")
    if found.digest() != recorded:
        raise InputError(f"{found.qrels}: changed since {paths.metrics} was measured; run `pipeline evaluate` again")
    return found


def galleries(paths: Paths, settings: Settings, shown: Mapping[str, System], given: Path | None,
              right: Truth) -> dict[str, Gallery]:
    """Join systems with their captions and photographs.

    Args:
        paths: Where files lie.
        settings: The run.
        shown: Ensemble or feature -> store.
        given: The folder of photographs; None for the manifest's.
        right: The right answers.

    Returns:
        Ensemble or feature -> gallery.
    """
    if not shown:
        return {}
    manifest, folder = Manifest.load(paths.manifest(settings.run.dataset)), photographs(paths, settings, given)
    return {visual: Gallery.of(store.check(), manifest, folder, right) for visual, store in shown.items()}
