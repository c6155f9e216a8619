"""Open the images of a head: stored features, the photographs themselves, or new images that are in no store."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from pipeline.features.extractors import base
from pipeline.features.extractors.rebuild import extractor_of
from pipeline.features.store import FeatureStore, provenance
from pipeline.features.store.boxes import BoxedStore
from pipeline.files import weights
from pipeline.files.weights import RELEASED
from pipeline.heads import reads_boxes
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError
from pipeline.settings import Recipe
from pipeline.text import Text
from pipeline.training.image_source import ImageSource
from pipeline.training.photographs import Photographs


def described(source: ImageSource) -> dict[str, Any]:
    """Summarise what made the features, for results that rest on them."""
    if isinstance(source, Photographs):
        return source.provenance
    assert isinstance(source, FeatureStore)
    return provenance(source)


def has_class_token(source: ImageSource) -> bool:
    """Look for a vision transformer's class token."""
    if isinstance(source, Photographs):
        return bool(source.engine.settings.get("cls"))
    assert isinstance(source, FeatureStore)
    return bool(source.fingerprint.get("settings", {}).get("cls"))


def networks(source: ImageSource, text: Text, origin: Mapping[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """Name the networks behind a head's two sides, which distinguishes the papers' networks from others.

    Args:
        source: The images.
        text: The kind of text.
        origin: The origin of a converted head, whose own network came with it; None otherwise.

    Returns:
        image: the engine; the network, if the engine has a choice; the `weights` by their name in
        manifests/weights.yaml, or "untrained", or else their file's name as `file`. For imported features the engine
        alone is known. text: see `Text.checkpoint`.
    """
    if isinstance(source, Photographs):
        engine, settings = source.name, dict(source.engine.settings)
        if origin is not None:
            settings["weights"] = RELEASED
    else:
        assert isinstance(source, FeatureStore)
        engine, settings = source.fingerprint["engine"], source.fingerprint.get("settings", {})
    image = {"engine": engine} | {key: settings[key] for key in ("network", "weights") if key in settings}
    if "weights" in image and image["weights"] not in {*weights.checkpoints(), weights.UNTRAINED, RELEASED}:
        image["file"] = Path(image.pop("weights")).name
    return {"image": image, "text": dict(text.checkpoint)}


def stored(features: Path, manifest: Manifest, recipe: Recipe) -> FeatureStore:
    """Open the stored features that a recipe's head reads.

    Args:
        features: The feature store.
        manifest: The images.
        recipe: The recipe.

    Returns:
        The store, which gives boxes too if the head reads them.

    Raises:
        InputError: If it is missing, does not belong to the manifest's images, or lacks boxes that are read.
    """
    return (BoxedStore if reads_boxes(recipe) else FeatureStore)(features).require(manifest)


def require_alike(store: FeatureStore, own: FeatureStore) -> None:
    """Check that features of another data set were made as those that a head was trained on.

    Args:
        store: The other data set's.
        own: What the head was trained on.

    Raises:
        InputError: If they were not.
    """
    for key in sorted(own.fingerprint.keys() | store.fingerprint.keys()):
        if key not in ("dataset", "images", "source") and store.fingerprint.get(key) != own.fingerprint.get(key):
            raise InputError(f"{store.path}: its {key} is {store.fingerprint.get(key)!r}, the head was trained with "
                             f"{own.fingerprint.get(key)!r}; extract both alike")


def of_head(description: Mapping[str, Any], manifest: Manifest, features: Path, images_folder: Path | None = None
            ) -> ImageSource:
    """Open the images of a trained head: the feature store, or the image files if the head has its own feature network.

    Args:
        description: The content of head.json.
        manifest: The images.
        features: The feature store.
        images_folder: Where the image files lie; None for the manifest's folder.

    Returns:
        The source.

    Raises:
        InputError: If it is missing, or does not belong to the manifest's images.
    """
    if "finetuned" not in description:
        try:
            recipe = Recipe.model_validate(description["recipe_settings"])
        except (KeyError, ValueError):
            raise InputError(f"{features}: is wanted for a head that is not of this version; train it again") from None
        return stored(features, manifest, recipe)
    engine = description["finetuned"]
    # The head has all weights; those that it started from need not be here.
    source = Photographs(manifest, images_folder or manifest.images_folder, engine["engine"],
                         {**engine["options"], "weights": weights.UNTRAINED})
    source.identity = description["store"]
    return source


class NewImages:
    """Prepares images for a head: features made and rounded as its store's were, or pixels where it reads these."""

    def __init__(self, source: ImageSource, device: str = "cpu") -> None:
        self.source = source
        self.engine = source.engine if isinstance(source, Photographs) else extractor_of(_store(source), device)

    def items(self, images: Sequence[Image.Image]) -> tuple[np.ndarray, np.ndarray]:
        """Prepare images: items [B, N, D], padding zero, or pixels [B, S, S, 3], and counts int64 [B]."""
        prepared = [self.engine.prepare(image) for image in images]
        if isinstance(self.source, Photographs):
            return torch.stack(prepared).numpy(), np.full(len(images), self.source.layout.items)
        store, sizes = _store(self.source), [image.size for image in images]
        found = base.bring(self.engine.extract(prepared, sizes), store.layout.dtype)
        counts = np.array([len(each.features) for each in found])
        items = np.zeros((len(images), store.layout.items, store.layout.dimension), store.layout.dtype)
        for row, each in zip(items, found, strict=True):
            row[:len(each.features)] = each.features
        if isinstance(store, BoxedStore):
            boxes = np.zeros((*items.shape[:2], 4), np.float32)
            for row, each in zip(boxes, found, strict=True):
                row[:len(each.features)] = each.extras.get("boxes", 0)
            items = store.join(items, counts, boxes, np.array(sizes, np.int32))
        return items, counts


def _store(source: ImageSource) -> FeatureStore:
    assert isinstance(source, FeatureStore)
    return source
