"""Turn published weights of VSE∞ into a head."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.features import FEATURES
from pipeline.paths import Paths, system
from stages import options

if TYPE_CHECKING:
    from pipeline import training
    from pipeline.files import weights
    from pipeline.manifest import Manifest
    from pipeline.settings import Settings
    from pipeline.store import FeatureStore


@click.command
@click.argument("checkpoint", type=options.FilePath())
@options.dataset
@click.option("--vocabulary", type=options.FilePath(),
              help="SCAN's JSON with the words of a BiGRU: coco_precomp_vocab.json, f30k_precomp_vocab.json.")
@click.option("--images", type=options.FilePath(), show_default="as in the manifest",
              help="Where the image files lie, for a grid checkpoint.")
@click.option("--name", callback=options.called, default="vse_infty_released", show_default=True, metavar="NAME",
              help="Its recipe's name, in its folder and in results.")
@click.option("--out", type=options.FilePath(), show_default="heads/DATASET/NAME-FEATURE-TEXT-s0",
              help="The head's folder.")
@options.if_changed
@options.with_settings
def command(paths: Paths, settings: Settings, checkpoint: Path, dataset: str | None, vocabulary: Path | None,
            images: Path | None, name: str, out: Path | None, if_changed: str) -> None:
    """Turn a checkpoint of VSE∞'s released code (github.com/woodfrog/vse_infty, model_best.pth) into a head.

    It is scored as one that was trained here, on features like those it was trained on: region features of SCAN's files
    (`pipeline import`), with BUTD's 36 boxes. A grid checkpoint has its network with it and is scored from the images:
    features.PRESET.grid must name that network, butd_resnet101 at 512 px and 16 x 16. Nothing in the file is run.

    Example: pipeline convert model_best.pth --dataset coco --vocabulary coco_precomp_vocab.json
    """
    released = training.read_released(checkpoint)
    if released.text == "bert":
        options.refuse("vocabulary", why="is for a BiGRU; this checkpoint has a BERT, whose words are its tokenizer's")
    manifest = Manifest.load(paths.manifest(dataset or settings.run.dataset))
    source: FeatureStore | training.Photographs
    if FEATURES[released.feature].trainable:  # it has its own network; the settings' must be the same
        engine = settings.engine_of(manifest.dataset, released.feature)
        untrained = {**engine.options, "weights": weights.UNTRAINED}
        source = training.Photographs(manifest, images or manifest.images_folder, engine.engine, untrained)
    else:
        options.refuse("images", why="is for grid checkpoints, which have their own network")
        source = FeatureStore(paths.features(manifest.dataset, released.feature)).require(manifest)
    folder = out or paths.head(manifest.dataset, system(name, released.feature, released.text, 0))
    job = training.TrainingJob(manifest, source, released.feature, released.text, name, settings.recipe("vse_infty"),
                               settings.training_of(manifest.dataset), 0, folder, if_changed)
    training.convert(job, released, vocabulary)
    rsum = "" if released.rsum is None else f", val RSUM {released.rsum:.1f} as its code counted"
    click.echo(f"{folder}: {released.feature} and {released.text}, {released.epoch} epochs{rsum}; next: pipeline score "
               f"--head {folder}")
