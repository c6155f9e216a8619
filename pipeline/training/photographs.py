"""Photographs as a head's images, for a head whose feature network is trained with it."""

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from pipeline.files import images
from pipeline.files.digest import digest
from pipeline.files.gallery_file import GalleryFile
from pipeline.heads.base import Backbone
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError
from pipeline.training.image_source import Sizes

LEAST_CROP = 0.6
"""A crop in training keeps at least this share of either side (VSE∞'s released code)."""


class Photographs:
    """Pixels as an engine prepares them, for a head whose feature network is trained with it.

    Args:
        manifest: The images.
        folder: Where their files lie.
        name: The engine.
        options: The engine's settings.

    Raises:
        InputError: For an engine that cannot be trained, or whose weights are missing.
    """

    def __init__(self, manifest: Manifest, folder: Path, name: str, options: Mapping[str, Any]) -> None:
        self.path, self._files = folder, manifest.images["file"].to_numpy()
        self.name, self.options = name, dict(options)
        from pipeline.features import extractors  # and with it timm, which stored features do without

        self.engine: Any = extractors.build(name, options, extractors.Runtime())
        if not hasattr(self.engine, "forward"):
            raise InputError(f"the engine {name} is not trained end to end; fine-tuning is for grid and patch")
        self.layout: Sizes = self.engine
        self.width = self.layout.dimension
        self.done = np.ones(len(self._files), dtype=bool)

    @cached_property
    def identity(self) -> str:
        """SHA-256 over the engine, its settings and its first weights."""
        return digest({"engine": self.name, "settings": dict(self.engine.settings), "weights": self.engine.weights})

    @property
    def provenance(self) -> dict[str, Any]:
        """What made the features, for results that rest on them."""
        return {"recipe": f"{self.engine.reported_as}-finetuned", "engine": self.name, "weights": self.engine.weights,
                "trained": self.engine.trained}

    def backbone(self) -> Backbone:
        """Take the engine's network, to be trained.

        Returns:
            The backbone.
        """
        return Backbone(self.engine.settings["network"], self.engine.network.model, self.engine.forward)

    def read(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read and prepare images. Every image has all items.

        Args:
            rows: Int64 [B].

        Returns:
            Pixels [B, S, S, 3] and counts int64 [B].
        """
        return self._prepared(rows, None), np.full(len(rows), self.layout.items)

    def content(self, rows: np.ndarray, like: str = "") -> str:
        """Digest the images' files.

        Args:
            rows: Int64 [B].
            like: Not used: there is one way.

        Returns:
            SHA-256 of their bytes.

        Raises:
            InputError: If one is missing.
        """
        def one(row: int) -> str:
            file = self._file(row)
            try:
                return hashlib.sha256(file.content()).hexdigest()
            except OSError:
                raise InputError(f"{file.path}: no such image; mend it, or leave the image out of the manifest"
                                 ) from None

        with ThreadPoolExecutor() as threads:  # hashing lets go of Python's lock
            return digest(list(threads.map(one, rows.tolist())))

    def require_extracted(self, images: np.ndarray) -> None:
        """Do nothing: photographs are not extracted.

        Args:
            images: Int64 [B].
        """

    def check(self, rows: np.ndarray) -> None:
        """Do nothing: the files are read as they are, and `content` records what they were.

        Args:
            rows: Not used.
        """

    def augmented(self, rows: np.ndarray, draws: np.ndarray) -> np.ndarray:
        """Read and prepare images after a random crop and flip.

        Args:
            rows: Int64 [B].
            draws: [B, 4], uniform in 0..1, see `crop_and_flip`.

        Returns:
            Pixels [B, S, S, 3].
        """
        return self._prepared(rows, draws)

    def _file(self, row: int) -> GalleryFile:
        """An image's file, which may lie in a tar or Parquet."""
        return GalleryFile(self.path / self._files[row])

    def _prepared(self, rows: np.ndarray, draws: np.ndarray | None) -> np.ndarray:
        def one(place: int) -> torch.Tensor:
            file = self._file(rows[place])
            try:
                image = file.decoded()
            except images.ImageError as error:
                raise InputError(f"{file.path}: {error}; mend it, or leave the image out of the manifest") from None
            prepared: torch.Tensor = self.engine.prepare(image if draws is None else crop_and_flip(image, draws[place]))
            return prepared
        with ThreadPoolExecutor() as threads:  # decoding and resizing let go of Python's lock
            return torch.stack(list(threads.map(one, range(len(rows))))).numpy()


def crop_and_flip(image: Image.Image, draws: np.ndarray) -> Image.Image:
    """Crop 0.6 to 1 of both sides and flip half the time (VSE∞'s released code), by four draws in 0..1."""
    share = LEAST_CROP + (1 - LEAST_CROP) * draws[0]
    width, height = (max(1, int(side * share)) for side in image.size)
    left, top = (int((whole - part) * at) for whole, part, at in zip(image.size, (width, height), draws[1:3],
                                                                    strict=True))
    cropped = image.crop((left, top, left + width, top + height))
    return cropped.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if draws[3] < 0.5 else cropped
