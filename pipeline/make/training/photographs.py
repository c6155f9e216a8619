"""Photographs of a head whose feature network is trained with it, and new images of any head."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from PIL import Image

from pipeline.foundation.artefacts import Reference
from pipeline.foundation.files import images
from pipeline.foundation.files.digest import digest
from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.foundation.manifest import Manifest, photographs
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.make.features import extractors
from pipeline.make.features.extractors.new_items import NewItems, padded
from pipeline.make.features.store import ItemFormat, boxes
from pipeline.make.heads import Backbone
from pipeline.make.training.artefact import HeadArtefact

# A crop in training keeps at least this share of either side (VSE∞'s released code).
LEAST_CROP = 0.6


class PreparedImages(Protocol):
    """Prepares photographs that are in no store, in the form that a head takes."""

    def items(self, images: Sequence[Image.Image]) -> tuple[np.ndarray, np.ndarray]:
        """The items [B, N, D], padding zero, or pixels [B, S, S, 3], of B upright RGB images; and
        counts int64 [B].
        """


class NewPixels(PreparedImages):
    """An engine whose network is trained with the head, and the pixels that it reads."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self.engine: Any = extractors.build(name, options, extractors.Runtime())
        if not hasattr(self.engine, "forward"):
            raise InputError(
                f"the engine {name} is not trained end to end; fine-tuning is for grid and patch"
            )

    def backbone(self) -> Backbone:
        """Take the engine's network, to be trained."""
        engine = self.engine
        return Backbone(engine.settings["network"], engine.network.model, engine.forward)

    def items(self, images: Sequence[Image.Image]) -> tuple[np.ndarray, np.ndarray]:
        """Prepare photographs, see `PreparedImages.items`."""
        pixels = torch.stack([self.engine.prepare(image) for image in images]).numpy()
        return pixels, np.full(len(images), self.engine.items)


class Photographs:
    """Pixels as an engine prepares them, for a head whose feature network is trained with it."""

    def __init__(
        self, manifest: Manifest, folder: Path, name: str, options: Mapping[str, Any]
    ) -> None:
        self.path = folder
        self._manifest = manifest
        self._files = manifest.images["file"].to_numpy()
        self.name = name
        self.options = dict(options)
        self.pixels = NewPixels(name, options)
        self.engine = self.pixels.engine
        self.width = int(self.engine.dimension)
        self.slots = int(self.engine.items)
        self.done = np.ones(len(self._files), dtype=bool)

    @cached_property
    def identity(self) -> str:
        """SHA-256 over the engine, its settings and its initial weights, wherever their file is."""
        settings = {key: value for key, value in self.engine.settings.items() if key != "weights"}
        return digest({"engine": self.name, "settings": settings, "weights": self.engine.weights})

    @property
    def provenance(self) -> dict[str, Any]:
        """What made the features, for the records of results."""
        return {
            "recipe": f"{self.engine.reported_as}-finetuned",
            "engine": self.name,
            "weights": self.engine.weights,
            "trained": self.engine.trained,
        }

    def read(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read and prepare images, each with all its items, see `ItemReader.read`."""
        return self.augmented(rows, None), np.full(len(rows), self.slots)

    def reference(self, rows: np.ndarray) -> Reference:
        """The reference to the files of rows, int64 [B], as they are now, see
        `photographs.reference`.
        """
        return photographs.reference(self._manifest, rows, self.path)

    def content(self, rows: np.ndarray) -> str:
        """The identity of the files of rows, int64 [B]."""
        return self.reference(rows).identity

    def require_extracted(self, images: np.ndarray) -> None:
        """Do nothing: photographs (images) are not extracted."""

    def check(self, rows: np.ndarray) -> None:
        """Do nothing, whatever the rows: the files are read as they are, and `reference` records
        what they were.
        """

    def _file(self, row: int) -> GalleryFile:
        """An image's file, which may be in a tar or Parquet."""
        return GalleryFile(str(self.path / self._files[row]))

    def augmented(self, rows: np.ndarray, draws: np.ndarray | None) -> np.ndarray:
        """Read the images of rows, int64 [B], as pixels [B, S, S, 3], cropped and flipped by draws;
        None for none.

        draws: [B, 4], uniform in 0..1, see `crop_and_flip`.

        Raises:
            InputError: If one cannot be decoded.
        """

        def prepared(place: int) -> torch.Tensor:
            image = self._decoded(rows[place])
            if draws is not None:
                image = crop_and_flip(image, draws[place])
            pixels: torch.Tensor = self.engine.prepare(image)
            return pixels

        with ThreadPoolExecutor() as threads:  # decoding and resizing release Python's lock
            pixels = list(threads.map(prepared, range(len(rows))))
        return torch.stack(pixels).numpy()

    def _decoded(self, row: int) -> Image.Image:
        file = self._file(row)
        with refusing(
            images.ImageError,
            lambda error: (
                f"{file.path}: {error}; replace it, or leave the image out of the manifest"
            ),
        ):
            return file.decoded()


def crop_and_flip(image: Image.Image, draws: np.ndarray) -> Image.Image:
    """Crop 0.6 to 1 of both sides and flip half the time (VSE∞'s released code), by four draws in
    0..1.
    """
    share = LEAST_CROP + (1 - LEAST_CROP) * draws[0]
    whole_width, whole_height = image.size
    width = max(1, int(whole_width * share))
    height = max(1, int(whole_height * share))
    left = int((whole_width - width) * draws[1])
    top = int((whole_height - height) * draws[2])
    cropped = image.crop((left, top, left + width, top + height))
    if draws[3] < 0.5:
        return cropped.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return cropped


def photographs_of(
    head: HeadArtefact, manifest: Manifest, folder: Path | None = None
) -> Photographs:
    """Open the image files of a manifest, or in another folder, for a head with its own network."""
    engine = head.facts.own_network
    assert engine is not None
    source = Photographs(manifest, folder or manifest.images_folder, engine.engine, engine.options)
    source.identity = head.facts.store
    return source


class NewImages(PreparedImages):
    """The engine that made a store's items, for photographs that are in no store. boxed: see
    `BoxedStore`.
    """

    def __init__(self, made: ItemFormat, boxed: bool, device: str = "cpu") -> None:
        self.made = made
        self.boxed = boxed
        self._new = NewItems(made, device)

    def items(self, images: Sequence[Image.Image]) -> tuple[np.ndarray, np.ndarray]:
        """Prepare photographs; items are rounded as the store's were, see
        `PreparedImages.items`.
        """
        sizes = [image.size for image in images]
        extracted = self._new.extracted(images, sizes)
        items, counts = padded(extracted, self.made)
        if self.boxed:
            items = boxes.join(items, counts, self._places(extracted, sizes))
        return items, counts

    def _places(
        self, extracted: Sequence[extractors.Items], sizes: Sequence[tuple[int, int]]
    ) -> boxes.Floats:
        """The places of the items, float32 [B, N, 6], or [N, 6] where all images have the same."""
        recipe = str(self.made.made.get("recipe"))
        cells = boxes.cells_of(self.made, Path(recipe))
        if cells is not None:
            return cells
        corners = np.zeros((len(sizes), self.made.items, 4), np.float32)
        for row, items in zip(corners, extracted, strict=True):
            row[: len(items.features)] = items.extras.get("boxes", 0)
        return boxes.six(corners, np.array(sizes, np.int32))
