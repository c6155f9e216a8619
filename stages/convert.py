"""Turn published weights of VSE∞ into a head."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline import training
from pipeline.manifest import Manifest
from pipeline.settings import Settings
from pipeline.store import FeatureStore
from stages import options
from stages.layout import Layout, system


@click.command
@click.argument("checkpoint", type=click.Path(path_type=Path))
@options.dataset
@click.option("--vocabulary", type=click.Path(path_type=Path),
              help="SCAN's JSON with the words of a BiGRU: coco_precomp_vocab.json, f30k_precomp_vocab.json.")
@click.option("--name", default="vse_infty_released", show_default=True, metavar="NAME",
              help="Its recipe's name, in its folder and in results.")
@click.option("--out", type=click.Path(path_type=Path), show_default="heads/DATASET/NAME-FEATURE-TEXT-s0",
              help="The head's folder.")
@options.if_changed
@options.with_settings
def command(layout: Layout, settings: Settings, checkpoint: Path, dataset: str | None, vocabulary: Path | None,
            name: str, out: Path | None, if_changed: str) -> None:
    """Turn a checkpoint of VSE∞'s released code (github.com/woodfrog/vse_infty, model_best.pth) into a head.

    It is scored as one that was trained here, on features like those it was trained on: region features of SCAN's files
    (`pipeline import`), with BUTD's 36 boxes. Nothing in the file is run.

    Example: pipeline convert model_best.pth --dataset coco --vocabulary coco_precomp_vocab.json
    """
    released = training.read_released(checkpoint)
    manifest = Manifest.load(layout.manifest(dataset or settings.run.dataset))
    store = FeatureStore(layout.features(manifest.dataset, released.feature)).require(manifest)
    folder = out or layout.head(manifest.dataset, system(name, released.feature, released.text, 0))
    training.convert(training.Job(manifest, store, released.feature, released.text, name, settings.recipe("vse_infty"),
                                  settings.training_of(manifest.dataset), 0, folder, if_changed), released, vocabulary)
    click.echo(f"{folder}: {released.feature} and {released.text}, {released.epoch} epochs, val RSUM "
               f"{released.rsum:.1f} as its code counted; next: pipeline score --head {folder}")
