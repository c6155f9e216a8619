"""The images of a head, by their row in the manifest: stored features, or photographs. Nothing here
imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from pipeline.foundation.files import weights
from pipeline.foundation.manifest import Manifest, Split
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Recipe
from pipeline.make.features.store import FeatureStore, StoreError
from pipeline.make.features.store.boxes import BoxedStore
from pipeline.make.heads import reads_boxes
from pipeline.make.training.artefact import Origin

if TYPE_CHECKING:
    from pipeline.make.text import Text
    from pipeline.make.training.photographs import Photographs


class ItemReader(Protocol):
    """Reads images by their row, in the form that a head takes."""

    def read(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The items [B, N, D] or pixels [B, S, S, 3] of some rows, int64 [B], and counts int64 [B],
        for `Side.of`.
        """


# Images by their row in the manifest.
ImageSource: TypeAlias = "FeatureStore | Photographs"


def networks(
    source: ImageSource, text: Text, origin: Origin | None = None
) -> dict[str, dict[str, Any]]:
    """Name a head's image and text networks, so that tables can tell the papers' networks from
    stand-ins.

    Args:
        source: The images.
        text: The text encoder.
        origin: The origin of a converted head, whose own network came with it; None otherwise.

    Returns:
        image: the engine; the `name` of its features by its options; the network, if the engine has
            a choice; the `weights` by their name in manifests/weights.yaml, or "untrained", or else
            the digest of their file, whose path is `place`; the `precision`, if it is not fp32. For
            imported features the `format` alone is known. text: see `Text.checkpoint`.
    """
    if isinstance(source, FeatureStore):
        made: Mapping[str, Any] = source.fingerprint
        settings = made.get("settings", {})
        place = source.place
    else:
        made = {"engine": source.name, "name": source.engine.reported_as}
        settings, place = weights.by_digest(source.engine.settings)
        if origin is not None:
            settings["weights"] = weights.RELEASED
            place = {}
    image = {}
    for key in ("format", "engine", "name"):
        if key in made:
            image[key] = made[key]
    for key in ("network", "weights"):
        if key in settings:
            image[key] = settings[key]
    if made.get("precision", "fp32") != "fp32":
        image["precision"] = made["precision"]
    if "weights" in place:
        image["place"] = place["weights"]
    return {"image": image, "text": dict(text.checkpoint)}


def stored(features: Path, manifest: Manifest, recipe: Recipe) -> FeatureStore:
    """Open the stored features of a manifest's images that a recipe's head reads, with boxes if it
    reads them.

    Raises:
        InputError: If they are missing, belong to other images, or lack boxes that are read.
    """
    kind = BoxedStore if reads_boxes(recipe) else FeatureStore
    store = kind(features)
    if store.layout.kind == "captions":
        raise StoreError(f"{features}: holds captions; the head reads features of images")
    return store.require(manifest)


def usable(source: ImageSource, split: Split, captions: FeatureStore | None = None) -> Split:
    """Return a split without what failed in the source or in the features of captions: it would be
    zeros.

    Raises:
        InputError: If every image or caption failed.
    """
    source.require_extracted(split.store_rows)
    usable_part = split.only(source.done[split.store_rows])
    if not len(usable_part.image_ids):
        raise InputError(
            f"{source.path}: every image of the split {split.name} failed in extraction, see failures.csv"
        )
    if captions is not None:
        rows = captions.rows_of(usable_part.caption_ids)
        captions.require_extracted(rows)
        usable_part = usable_part.without_captions(~captions.done[rows])
        if not len(usable_part.caption_ids):
            raise InputError(
                f"{captions.path}: every caption of the split {split.name} failed in extraction, see "
                "failures.csv"
            )
    return usable_part
