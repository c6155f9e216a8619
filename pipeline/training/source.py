"""Where a head's images come from: stored features, or the photographs themselves."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from PIL import Image

from pipeline.errors import InputError
from pipeline.files import images, weights
from pipeline.files.digest import digest, of_files
from pipeline.heads.backbone import Backbone
from pipeline.manifest import Manifest
from pipeline.store import FeatureStore, provenance
from pipeline.text import Text
from pipeline.training.names import RELEASED

LEAST_CROP = 0.6
"""A crop in training keeps at least this share of either side (VSE∞'s released code)."""


class Sizes(Protocol):
    """items: the most that an image has (N). dimension: D."""

    @property
    def items(self) -> int: ...

    @property
    def dimension(self) -> int: ...


class Source(Protocol):
    """Images by their row in the manifest.

    path: for messages. identity: what a head that was trained on it depends on. layout: its sizes. done: bool [I],
    False where an image has no features.
    """

    @property
    def path(self) -> Path: ...

    @property
    def identity(self) -> str: ...

    @property
    def layout(self) -> Sizes: ...

    @property
    def done(self) -> np.ndarray: ...

    def read(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What `TwoTower.embed_images` takes of the images `rows` [B], and counts [B] int64."""
        ...

    def content(self, rows: np.ndarray) -> str:
        """SHA-256 over the bytes that `read` rests on for the images `rows` [B], as they were written."""
        ...

    def check(self, rows: np.ndarray) -> None:
        """Raises InputError where these bytes are not as they were written."""
        ...


class Photographs:
    """Pixels as an engine prepares them, for a head whose network is trained with it.

    manifest: whose files, in `folder`. name, options: of the engine. Raises InputError for an engine that cannot be
    trained, or whose weights are missing.
    """

    def __init__(self, manifest: Manifest, folder: Path, name: str, options: Mapping[str, Any]) -> None:
        self.path, self._files = folder, manifest.images["file"].to_numpy()
        self.name, self.options = name, dict(options)
        from pipeline import extractors  # and with it timm, which stored features do without

        self.engine: Any = extractors.build(name, options, extractors.Runtime())
        if not hasattr(self.engine, "forward"):
            raise InputError(f"the engine {name} is not trained end to end; fine-tuning is for grid and patch")
        self.layout: Sizes = self.engine
        self.done = np.ones(len(self._files), dtype=bool)

    @cached_property
    def identity(self) -> str:
        """SHA-256 over the engine, its settings and the weights that it starts from."""
        return digest({"engine": self.name, "settings": dict(self.engine.settings), "weights": self.engine.weights})

    @property
    def provenance(self) -> dict[str, Any]:
        """What a result says of the features it rests on."""
        return {"recipe": f"{self.engine.reported_as}-finetuned", "engine": self.name, "weights": self.engine.weights,
                "trained": self.engine.trained}

    def backbone(self) -> Backbone:
        """The engine's network, to be trained."""
        return Backbone(self.engine.settings["network"], self.engine.network.model, self.engine.forward)

    def read(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Prepared pixels [B, S, S, 3] and counts [B]: every image has all items."""
        return self._prepared(rows, None), np.full(len(rows), self.layout.items)

    def content(self, rows: np.ndarray) -> str:
        """SHA-256 over the bytes of these images' files. Raises InputError where one is not there."""
        files = [self.path / self._files[row] for row in rows]
        try:
            return digest(list(of_files(files)))
        except OSError as error:
            raise InputError(f"{error.filename}: no such image; mend it, or leave the image out of the manifest"
                             ) from None

    def check(self, rows: np.ndarray) -> None:
        """Nothing: the files are read as they are, and `content` tells what they were."""

    def augmented(self, rows: np.ndarray, draws: np.ndarray) -> np.ndarray:
        """The same pixels after a random crop and flip, by `draws` [B, 4], each uniform in 0..1 (`crop_and_flip`)."""
        return self._prepared(rows, draws)

    def _prepared(self, rows: np.ndarray, draws: np.ndarray | None) -> np.ndarray:
        def one(place: int) -> torch.Tensor:
            path = self.path / self._files[rows[place]]
            try:
                image = images.decode(path)
            except images.ImageError as error:
                raise InputError(f"{path}: {error}; mend it, or leave the image out of the manifest") from None
            prepared: torch.Tensor = self.engine.prepare(image if draws is None else crop_and_flip(image, draws[place]))
            return prepared
        with ThreadPoolExecutor() as threads:  # decoding and resizing let go of Python's lock
            return torch.stack(list(threads.map(one, range(len(rows))))).numpy()


def crop_and_flip(image: Image.Image, draws: np.ndarray) -> Image.Image:
    """A crop of 0.6 to 1 of both sides at a random place, flipped half the time (VSE∞'s released code).

    draws: four in 0..1: the crop's share, its place along the width and the height, and whether it is flipped.
    """
    share = LEAST_CROP + (1 - LEAST_CROP) * draws[0]
    width, height = (max(1, int(side * share)) for side in image.size)
    left, top = (int((whole - part) * at) for whole, part, at in zip(image.size, (width, height), draws[1:3],
                                                                    strict=True))
    cropped = image.crop((left, top, left + width, top + height))
    return cropped.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if draws[3] < 0.5 else cropped


def described(source: Source) -> dict[str, Any]:
    """What a result says of the features it rests on."""
    if isinstance(source, Photographs):
        return source.provenance
    assert isinstance(source, FeatureStore)
    return provenance(source)


def has_class_token(source: Source) -> bool:
    """Whether the first item of every image is a vision transformer's class token."""
    if isinstance(source, Photographs):
        return bool(source.engine.settings.get("cls"))
    assert isinstance(source, FeatureStore)
    return bool(source.fingerprint.get("settings", {}).get("cls"))


def networks(source: Source, text: Text, origin: Mapping[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """The networks behind a head's two sides, by their names: what tells the papers' from stand-ins.

    `image`: the engine; the network, where the engine has a choice; the `weights` by their name in
    manifests/weights.yaml, or "untrained", or else their file's name as `file`. Of imported features the engine alone
    is known. `text`: see `Text.checkpoint`. origin: of a head that was converted; its own network came with it.
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


def of_head(description: Mapping[str, Any], manifest: Manifest, features: Path, images_folder: Path | None = None
            ) -> Source:
    """What a trained head embeds images from: the store at `features`, or, where it has its own network, the files.

    Raises InputError where that is not there, or not of the manifest's images.
    """
    if "finetuned" not in description:
        return FeatureStore(features).require(manifest)
    engine = description["finetuned"]
    # The head has all weights; those that it started from need not be here.
    source = Photographs(manifest, images_folder or manifest.images_folder, engine["engine"],
                         {**engine["options"], "weights": weights.UNTRAINED})
    source.identity = description["store"]
    return source
