"""Train one head on one feature."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
from tqdm import tqdm

from pipeline import training
from pipeline.manifest import Manifest
from pipeline.settings import Settings
from pipeline.store import FeatureStore
from stages import options
from stages.layout import Layout, system


@click.command
@options.feature
@options.dataset
@options.text
@options.recipe
@options.seed
@click.option("--out", type=click.Path(path_type=Path), show_default="heads/DATASET/RECIPE-FEATURE-TEXT-sSEED",
              help="The head's folder.")
@options.if_changed
@options.with_settings
def command(layout: Layout, settings: Settings, feature: str, dataset: str | None, text: str, recipe: str,
            seed: int, out: Path | None, if_changed: str) -> None:
    """Train one head on one feature, select its best epoch on val. Running again does nothing, or resumes.

    Example: pipeline train --feature region --recipe vse2ad
    """
    manifest = Manifest.load(layout.manifest(dataset or settings.run.dataset))
    store = FeatureStore(layout.features(manifest.dataset, feature)).require(manifest)
    folder = out or layout.head(manifest.dataset, system(recipe, feature, text, seed))
    job = training.Job(manifest, store, feature, text, recipe, settings.recipe(recipe),
                       settings.training_of(manifest.dataset), seed, folder, if_changed)
    with tqdm(unit="step", desc=folder.name) as bar:
        def on_step(epoch: int, step: int, log: Mapping[str, float]) -> None:
            bar.update()
            bar.set_postfix_str(f"epoch {epoch} " + " ".join(f"{name} {value:.3g}" for name, value in log.items()))

        def on_epoch(row: Mapping[str, float]) -> None:
            tqdm.write(f"{folder.name} epoch {row['epoch']:.0f}: loss {row['loss']:.3f}, val RSUM {row['rsum']:.1f}")

        state = training.train(job, on_step, on_epoch)
    best = state.history[state.best]
    click.echo(f"{folder}: best epoch {state.best} of {state.epochs}, val RSUM {best['rsum']:.1f}")
