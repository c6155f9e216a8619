"""Turn published weights of VSE∞, OSCAR or MMT-Retrieval into a head."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.settings.features import FEATURES
from pipeline.settings.paths import Paths, system
from stages import options

if TYPE_CHECKING:
    from pipeline import training
    from pipeline.features.store import FeatureStore
    from pipeline.files import weights
    from pipeline.manifest import Manifest
    from pipeline.settings import Settings
    from pipeline.training.released_cross import ReleasedCross


@click.command
@click.argument("checkpoint", type=options.FilePath())
@options.dataset
@click.option("--vocabulary", type=options.FilePath(dir_okay=False),
              help="SCAN's JSON with the words of a BiGRU: coco_precomp_vocab.json, f30k_precomp_vocab.json.")
@options.image_files(", for a grid checkpoint")
@click.option("--feature", type=click.Choice(list(FEATURES)), show_default="region",
              help="What a cross-encoder reads.")
@click.option("--name", callback=options.called, show_default="vse_infty_released or oscar", metavar="NAME",
              help="Its recipe's name, in its folder and in results.")
@options.out("heads/DATASET/NAME-FEATURE-TEXT-s0", "The head's folder.")
@options.if_changed
@options.with_settings
def command(paths: Paths, settings: Settings, checkpoint: Path, dataset: str | None, vocabulary: Path | None,
            images: Path | None, feature: str | None, name: str | None, out: Path | None, if_changed: str) -> None:
    """Turn a checkpoint of VSE∞'s released code (github.com/woodfrog/vse_infty, model_best.pth) into a head.

    Or one of OSCAR's (microsoft/Oscar) or MMT-Retrieval's (UKPLab/MMT-Retrieval): their folder, a zip of it, or the
    file pytorch_model.bin. Its words are those of training.NAME.bert, which must be the BERT that it began with.
    One that was trained for retrieval reranks (`pipeline rerank`); one that was not is what a recipe may `start` from.

    It is scored as one that was trained here, on features like those it was trained on: region features of SCAN's files
    (`pipeline import`), with BUTD's 36 boxes. A grid checkpoint has its network with it and is scored from the images:
    features.PRESET.grid must name that network, butd_resnet101 at 512 px and 16 x 16. Nothing in the file is run.

    Example: pipeline convert model_best.pth --dataset coco --vocabulary coco_precomp_vocab.json

    Example: pipeline convert checkpoint-29-66420 --dataset coco --name oscar
    """
    if checkpoint.is_dir() or checkpoint.suffix in (".bin", ".zip"):
        options.refuse("vocabulary", "images", why="is for VSE∞'s checkpoints; a cross-encoder has a BERT's words and "
                                                   "reads stored features")
        _convert_cross(paths, settings, training.read_released_cross(checkpoint), dataset or settings.run.dataset,
                       feature or "region", name or "oscar", out, if_changed)
        return
    options.refuse("feature", why="is for cross-encoders; a checkpoint of VSE∞ says what it reads")
    name = name or "vse_infty_released"
    released = training.read_released(checkpoint)
    if released.text == "bert":
        options.refuse("vocabulary", why="is for a BiGRU; this checkpoint has a BERT, whose words are its tokenizer's")
    manifest = Manifest.load(paths.manifest(dataset or settings.run.dataset))
    source: FeatureStore | training.Photographs
    if FEATURES[released.feature].trainable:  # it has its own network; the settings' must be the same
        manifest.require_photographs("a fine-tuned head")
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
               f"--system {folder}")


def _convert_cross(paths: Paths, settings: Settings, released: ReleasedCross, dataset: str, feature: str, name: str,
                   out: Path | None, if_changed: str) -> None:
    manifest, store = Manifest.load(paths.manifest(dataset)), paths.features(dataset, feature)
    without_boxes = FeatureStore(store).width == released.width
    recipe = training.recipe_of(released, settings.recipe("join"), boxes=not without_boxes)
    folder = out or paths.head(dataset, system(name, feature, "bert", 0))
    training.convert_cross(training.TrainingJob(
        manifest, training.stored(store, manifest, recipe), feature, "bert", name, recipe,
        settings.training_of(dataset), 0, folder, if_changed), released)
    use = f"pipeline rerank --with {folder.name}" if "ce" in released.tasks else f"a recipe with start: {name}"
    click.echo(f"{folder}: {feature}, {released.layers} layers; next: {use}")
