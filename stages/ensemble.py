"""Average the heads of R, RG or RGP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import numpy as np

from pipeline import retrieval, similarity_store
from pipeline.errors import InputError
from pipeline.settings import Settings
from pipeline.similarity_store import SimilarityStore
from stages import options
from stages.layout import ENSEMBLES, Layout, system


@click.command
@click.argument("name", type=click.Choice(list(ENSEMBLES)))
@options.dataset
@options.text
@options.recipe
@options.seed
@options.with_settings
def command(layout: Layout, settings: Settings, name: str, dataset: str | None, text: str, recipe: str,
            seed: int) -> None:
    """Average the similarities of the heads of R, RG or RGP, aligned by image and caption id.

    Example: pipeline ensemble RGP
    """
    dataset = dataset or settings.run.dataset
    paths = [layout.similarity(dataset, system(recipe, feature, text, seed)) for feature in ENSEMBLES[name]]
    stores = [SimilarityStore.open(path) for path in paths]
    members = [retrieval.Member(store.path.stem, store.similarity, store.image_ids, store.caption_ids)
               for store in stores]
    first = stores[0]
    path = layout.similarity(dataset, system(recipe, name, text, seed))
    similarity_store.save(path, _rows(retrieval.fuse(members), len(first.image_ids)), first.image_ids,
                          first.caption_ids, first.caption_image, _made_from(name, stores))
    click.echo(f"{path}: mean of {', '.join(member.name for member in members)}")


def _rows(fused: Any, images: int) -> Iterator[np.ndarray]:
    for row in range(0, images, similarity_store.ROWS):
        block = fused.block(slice(row, min(row + similarity_store.ROWS, images)), slice(0, fused.shape[1]))
        yield block.float().numpy()


def _made_from(name: str, stores: list[SimilarityStore]) -> dict[str, Any]:
    """What the ensemble was made from; its members must agree in all but the feature."""
    first = stores[0].made_from
    for store in stores[1:]:
        for key in ("dataset", "split", "manifest", "recipe", "text", "seed"):
            if store.made_from[key] != first[key]:
                raise InputError(f"{store.path}: its {key} is {store.made_from[key]!r}, that of {stores[0].path.name} "
                                 f"{first[key]!r}; score both anew")
    every = [store.made_from for store in stores]
    return {**first, "ensemble": name,
            "features": {feature: recipe for made in every for feature, recipe in made["features"].items()},
            "untrained": [feature for made in every for feature in made["untrained"]],
            "members": [member for made in every for member in made["members"]]}
