"""Write a head's similarity matrix."""

from __future__ import annotations

import click
import numpy as np
from tqdm import tqdm

from pipeline import similarity_store, training
from pipeline.manifest import Manifest
from pipeline.retrieval import Embeddings
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
@options.with_settings
def command(layout: Layout, settings: Settings, feature: str, dataset: str | None, text: str, recipe: str,
            seed: int) -> None:
    """Write a head's similarity matrix, embeddings and ids for the split score.split.

    Example: pipeline score --feature region
    """
    manifest = Manifest.load(layout.manifest(dataset or settings.run.dataset))
    store = FeatureStore(layout.features(manifest.dataset, feature)).require(manifest)
    name = system(recipe, feature, text, seed)
    head = training.load_head(layout.head(manifest.dataset, name), manifest, store)
    split = training.usable(store, manifest.split(settings.score.split))
    images, captions = training.embed(head.model, store, split, head.vocabulary, settings.score.batch_size)
    described = head.description
    made_from = {
        "dataset": manifest.dataset, "split": split.name, "recipe": recipe, "ensemble": None,
        "features": {feature: described["features"]["recipe"]}, "text": text, "seed": seed,
        "untrained": [] if described["features"]["trained"] else [feature], "manifest": manifest.digest,
        "members": [{"head": name, "checkpoint": head.checkpoint, "store": described["store"],
                     "weights": described["features"]["weights"]}]}
    path = layout.similarity(manifest.dataset, name)
    # Summed in float64 and rounded once, so that equal vectors have equal similarities wherever they stand.
    product = Embeddings(images, captions, double=True)
    with tqdm(total=len(images), unit="image", desc=name) as bar:
        similarity_store.save(path, [product], split.image_ids, split.caption_ids,
                              split.caption_image.astype(np.int64), made_from,
                              progress=lambda rows: bar.update(rows - bar.n),
                              image_embeddings=images, caption_embeddings=captions)
    click.echo(f"{path}: {len(images)} images x {len(captions)} captions of {split.name}")
