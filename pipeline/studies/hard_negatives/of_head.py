"""The vectors of a trained head, for questions about the images of a data set whose features are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import training
from pipeline.features.importers.ids import rows_of
from pipeline.features.store import FeatureStore
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError
from pipeline.provenance import record
from pipeline.text.base import encode


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
        from pipeline.studies import audit

        if own.digest == self.manifest.digest:
            return int((own.images["split"].to_numpy()[self.rows] == "train").sum())
        return len(audit.trained_on(own, self.manifest, self.manifest.images["image_id"].to_numpy()[self.rows]))
