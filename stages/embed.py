"""Embed a data set's images and captions with a head that was trained on it or on another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline import manifest as manifests
from pipeline.paths import Paths
from stages import options
from stages.progress import Progress

if TYPE_CHECKING:
    import numpy as np

    from pipeline import training
    from pipeline.manifest import Manifest, Split
    from pipeline.provenance import record
    from pipeline.scores import embedding_store
    from pipeline.settings import Settings
    from pipeline.store import FeatureStore

AT_ONCE = 2048  # images embedded before their vectors are written


@click.command
@click.argument("name")
@click.option("--head", required=True, metavar="SYSTEM", help="The head's name: vse2ad-region-bigru-s0.")
@click.option("--dataset", metavar="NAME", show_default="run.dataset", help="What the head was trained on.")
@click.option("--split", "splits", type=click.Choice(manifests.SPLITS), multiple=True,
              show_default="all that there are", help="Which images; may be given several times.")
@click.option("--out", type=options.FilePath(), show_default="embeddings/NAME/DATASET-SYSTEM.zarr",
              help="The store.")
@click.option("--images", "files", type=options.FilePath(), show_default="as in its manifest",
              help="Where the image files of NAME lie, for a fine-tuned head.")
@options.device
@options.with_settings_or_shipped
def command(paths: Paths, settings: Settings, name: str, head: str, dataset: str | None, splits: tuple[str, ...],
            out: Path | None, files: Path | None, device: str | None) -> None:
    """Embed the images and captions of data set NAME: for `pipeline search`, or as distractors of `pipeline evaluate`.

    Its features must be there, made by the same engine with the same settings as those that the head was trained on.
    A fine-tuned head has its own network and reads the image files.
    Photographs without captions still need a captions.csv: the files' names may stand in it as captions.

    Example: pipeline embed flickr8k --head vse2ad-region-bigru-s0 --dataset coco
    """
    options.choose_products(settings)
    trained_on = Manifest.load(paths.manifest(dataset or settings.run.dataset))
    folder = paths.head(trained_on.dataset, head)
    described = training.read_description(folder)
    own = training.source_of(described, trained_on, paths.features(trained_on.dataset, described["feature"]))
    trained = training.load_head(folder, trained_on, own,
                                 device or settings.training_of(trained_on.dataset).device)
    manifest = Manifest.load(paths.manifest(name))
    source = training.source_of(described, manifest, paths.features(name, described["feature"]), files)
    if isinstance(source, FeatureStore) and isinstance(own, FeatureStore):
        options.refuse("files", why="is for a fine-tuned head; this one reads stored features")
        training.require_alike(source, own)
    parts = [training.usable(source, manifest.split(split))
             for split in splits or [each for each in manifests.SPLITS if (manifest.images["split"] == each).any()]]
    path = out or paths.embeddings(name, trained_on.dataset, head)
    rows = np.concatenate([part.store_rows for part in parts])
    source.check(rows)
    made_from = record.made_from(folder, trained, manifest, "+".join(part.name for part in parts), source, rows) | {
        "trained_on": trained_on.dataset}
    _embed(path, trained, source, parts, settings.score.batch_size, made_from)
    images, captions = (sum(len(ids) for ids in every) for every in zip(
        *((part.image_ids, part.caption_ids) for part in parts), strict=True))
    click.echo(f"{path}: {images} images and {captions} captions of {name}")


def _embed(path: Path, trained: training.Head, source: training.ImageSource, parts: list[Split], batch_size: int,
           made_from: Mapping[str, Any]) -> None:
    firsts = np.cumsum([0, *(len(part.image_ids) for part in parts)])
    owner = np.concatenate([part.caption_image + first for part, first in zip(parts, firsts, strict=False)])
    ids = [np.concatenate([getattr(part, name) for part in parts]) for name in ("image_ids", "caption_ids")]
    row = column = 0
    with Progress(path.stem, "image", len(ids[0])) as bar, \
            embedding_store.writing(path, ids[0], ids[1], owner, trained.model.dimension, made_from) as (
                images, captions):
        for piece in (piece for part in parts for piece in _pieces(part)):
            vectors = training.embed(trained.model, source, piece, trained.text, batch_size)
            images[row:row + len(vectors[0])], captions[column:column + len(vectors[1])] = vectors
            row, column = row + len(vectors[0]), column + len(vectors[1])
            bar.update(len(vectors[0]))


def _pieces(part: Split) -> list[Split]:
    """Images in order with their captions, which stand in the order of their images."""
    number = np.arange(len(part.image_ids)) // AT_ONCE
    return [part.only(number == each) for each in range(int(number[-1]) + 1)]
