"""What answers questions: anything that embeds images and captions in one space, a trained head or a dual encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from pipeline import training
from pipeline.dual_encoders import embedding
from pipeline.dual_encoders import record as encoder_record
from pipeline.dual_encoders.base import DualEncoder
from pipeline.features.importers.ids import rows_of
from pipeline.features.store import FeatureStore
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError
from pipeline.provenance import record
from pipeline.studies import audit
from pipeline.text.base import encode


class System(Protocol):
    """A trained head (`OfHead`), or a dual encoder as it comes (`OfEncoder`)."""

    def find(self, files: Sequence[str], place: Path) -> np.ndarray:
        """Look for images, which `images` then embeds.

        Args:
            files: I files.
            place: Where they are named, for messages.

        Returns:
            Bool [I], whether each is there.

        Raises:
            InputError: If none is.
        """
        ...

    def images(self) -> np.ndarray:
        """Embed the images that were found.

        Returns:
            Unit vectors, float32 [I, d].
        """
        ...

    def captions(self, captions: Sequence[str]) -> np.ndarray:
        """Embed captions.

        Args:
            captions: C captions.

        Returns:
            Unit vectors, float32 [C, d].
        """
        ...

    def reads(self, captions: Sequence[str]) -> list[Any]:
        """Convert captions to what is read; with unknown words two of them can be equal.

        Args:
            captions: C captions.

        Returns:
            What is read of each, to be compared.
        """
        ...

    def cut(self, captions: Sequence[str]) -> tuple[int, int]:
        """Count captions that are longer than what is read.

        Args:
            captions: C captions.

        Returns:
            How many are cut, and the most words or word pieces that are read.
        """
        ...

    @property
    def made_from(self) -> dict[str, Any]:
        """What makes the vectors, as it is recorded beside scores."""

    def trained_on(self, own: Manifest) -> int | None:
        """Count the images that it was trained on.

        Args:
            own: What it was trained on.

        Returns:
            How many of the images that were found; None where that is not known.
        """
        ...


@dataclass
class OfHead:
    """A head, and a data set's images as it reads them."""

    folder: Path  # the head's folder
    head: training.Head  # the open head
    manifest: Manifest  # the images
    source: training.ImageSource  # their features
    batch_size: int  # images or captions at once
    rows: np.ndarray = field(init=False, repr=False)

    @classmethod
    def open(cls, folder: Path, trained_on: tuple[Manifest, Path], images: tuple[Manifest, Path], batch_size: int,
             device: str) -> OfHead:
        """Open a head for the images of a data set."""
        described = training.read_description(folder)
        own, source = (training.source_of(described, manifest, stores / f"{described['feature']}.zarr")
                       for manifest, stores in (trained_on, images))
        head = training.load_head(folder, trained_on[0], own, device)
        training.require_embeddings(head, folder.name)
        if isinstance(source, FeatureStore) and isinstance(own, FeatureStore):
            training.require_alike(source, own)
        return cls(folder, head, images[0], source, batch_size)

    def find(self, files: Sequence[str], place: Path) -> np.ndarray:
        """Look for images with features by file name, COCO's number or image id, see `System.find`."""
        found = rows_of(files, self.manifest, place)
        self.rows = np.array([-1 if row is None else row for row in found])
        there = (self.rows >= 0) & self.source.done[self.rows]
        self.rows = self.rows[there]
        if not there.any():
            raise InputError(f"{self.source.path}: has features of none of the images that {place} asks about")
        return there

    def images(self) -> np.ndarray:
        """Embed the images that were found, see `System.images`."""
        self.source.check(self.rows)
        return training.scoring.embed_images(self.head.model, self.source, self.rows, self.batch_size)

    def captions(self, captions: Sequence[str]) -> np.ndarray:
        """Embed captions, see `System.captions`."""
        return training.embed_captions(self.head.model, captions, self.head.text, self.batch_size)

    def reads(self, captions: Sequence[str]) -> list[Any]:
        """Convert captions to the numbers that the head reads, see `System.reads`."""
        return encode(self.head.text, captions)

    def cut(self, captions: Sequence[str]) -> tuple[int, int]:
        """Count captions that are longer than what the head reads, see `System.cut`."""
        room = self.head.text.longest - 2
        return sum(sum(map(len, each)) > room for each in self.head.text.split(captions)), room

    @property
    def made_from(self) -> dict[str, Any]:
        """What makes the vectors, as it is recorded beside scores."""
        splits = "+".join(dict.fromkeys(self.manifest.images["split"].to_numpy()[self.rows].tolist()))
        return record.made_from(self.folder, self.head, self.manifest, splits, self.source, self.rows)

    def trained_on(self, own: Manifest) -> int:
        """Count the images that the head was trained on, by photograph, see `System.trained_on`."""
        if own.digest == self.manifest.digest:
            return int((own.images["split"].to_numpy()[self.rows] == "train").sum())
        return len(audit.trained_on(own, self.manifest, self.manifest.images["image_id"].to_numpy()[self.rows]))


@dataclass
class OfEncoder:
    """A dual encoder, and a data set's image files."""

    model: str  # KIND:FOLDER or KIND:NAME
    name: str  # what it is called in results
    encoder: DualEncoder  # the open encoder
    manifest: Manifest  # the images
    batch_size: int  # images or captions at once
    rows: np.ndarray = field(init=False, repr=False)

    def find(self, files: Sequence[str], place: Path) -> np.ndarray:
        """Look for images by file name, COCO's number or image id, see `System.find`."""
        found = rows_of(files, self.manifest, place)
        self.rows = np.array([row for row in found if row is not None])
        return np.array([row is not None for row in found])

    def images(self) -> np.ndarray:
        """Embed the images that were found, see `System.images`."""
        files = self.manifest.images["file"].to_numpy()[self.rows]
        return np.concatenate([self.encoder.embed_images(
            [embedding.prepared(self.encoder, self.manifest.images_folder / file)[0]
             for file in files[start:start + self.batch_size]]) for start in range(0, len(files), self.batch_size)])

    def captions(self, captions: Sequence[str]) -> np.ndarray:
        """Embed captions, see `System.captions`."""
        return embedding.embed_captions(self.encoder, captions, self.batch_size)

    def reads(self, captions: Sequence[str]) -> list[Any]:
        """Give the captions as they are: word pieces spell every word, see `System.reads`."""
        return list(captions)

    def cut(self, captions: Sequence[str]) -> tuple[int, int]:
        """Count captions of which the beginning alone is read, see `System.cut`."""
        return sum(self.encoder.is_cut(captions)), self.encoder.token_limit

    @property
    def made_from(self) -> dict[str, Any]:
        """What makes the vectors, as it is recorded beside stored ones."""
        return encoder_record.made_from(self.name, self.model, self.encoder, None, self.manifest, {})

    def trained_on(self, own: Manifest) -> int | None:
        """Give None: which images it was trained on is not known, see `System.trained_on`."""
        return None
