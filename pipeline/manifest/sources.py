"""What features are made from: the images, clips or captions of a manifest, each by its id."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from pipeline.files import blake
from pipeline.files.gallery_file import GalleryFile
from pipeline.manifest.columns import PHOTOGRAPH
from pipeline.manifest.table import Manifest
from pipeline.parts.errors import InputError

Kind = Literal["images", "clips", "captions"]


class Sources(ABC):
    """A manifest's M images, clips or captions, in its order."""

    kind: Kind
    ids: np.ndarray  # Int64 [M]
    image_ids: np.ndarray  # Int64 [M], the image of each caption; of images and clips their own ids
    digest: str  # SHA-256 over ids and files or texts, in order

    @property
    @abstractmethod
    def sizes(self) -> np.ndarray:
        """The bytes of each file, or of each caption in UTF-8, int64 [M]; NO_FILE where they are not known."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """What messages call each of them."""

    @property
    @abstractmethod
    def checksums(self) -> np.ndarray | None:
        """The checksum of each file or text, str [M], "" where it is not known; None if none is known."""

    @abstractmethod
    def read_checksums(self, rows: Sequence[int], folder: Path | None = None) -> list[str]:
        """The checksums of some rows' files as they are, "" for one that cannot be read; or of their captions.

        Args:
            rows: Which of the M.
            folder: Where their files are; None for the manifest's folder.
        """

    @abstractmethod
    def read(self, rows: Sequence[int], folder: Path | None = None) -> Sequence[GalleryFile | str]:
        """The files or captions of some rows (of the M), as an engine reads them; folder: None for the manifest's."""


class Gallery(Sources):
    """A manifest's images or clips."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self.kind = gallery_kind(manifest)
        self.ids, self.digest = manifest.images["image_id"].to_numpy(), manifest.images_digest
        self.image_ids = self.ids

    @cached_property
    def sizes(self) -> np.ndarray:
        """The files' sizes by the manifest."""
        return self._manifest.images["bytes"].to_numpy()

    @cached_property
    def names(self) -> list[str]:
        """The files' names in the manifest."""
        names: list[str] = self._manifest.images["file"].tolist()
        return names

    @cached_property
    def checksums(self) -> np.ndarray | None:
        """The files' checksums by the manifest."""
        column = self._manifest.images.get(PHOTOGRAPH)
        return None if column is None else column.to_numpy(object)

    def read_checksums(self, rows: Sequence[int], folder: Path | None = None) -> list[str]:
        """Read some files for their checksums."""
        return [blake.if_there(file) or "" for file in self.files(rows, folder)]

    def files(self, rows: Sequence[int], folder: Path | None = None) -> list[GalleryFile]:
        """List the files of some images or clips."""
        return self._manifest.gallery(folder, rows)

    def read(self, rows: Sequence[int], folder: Path | None = None) -> Sequence[GalleryFile | str]:
        """List the files of some images or clips."""
        return self.files(rows, folder)


class Captions(Sources):
    """A manifest's captions."""

    kind: Kind = "captions"

    def __init__(self, manifest: Manifest) -> None:
        table = manifest.rows(["image_id", "caption_id", "caption"])
        self._texts: list[str] = table["caption"].tolist()
        self.ids, self.image_ids = (table[column].to_numpy() for column in ("caption_id", "image_id"))
        self.digest = manifest.captions_digest

    @cached_property
    def sizes(self) -> np.ndarray:
        """The captions' sizes in UTF-8."""
        return np.array([len(text.encode()) for text in self._texts], np.int64)

    @cached_property
    def names(self) -> list[str]:
        """Such as "caption 55"."""
        return [f"caption {number}" for number in self.ids.tolist()]

    @cached_property
    def checksums(self) -> np.ndarray:
        """The captions' checksums."""
        return np.array(self.read_checksums(range(len(self._texts))), object)

    def read_checksums(self, rows: Sequence[int], folder: Path | None = None) -> list[str]:
        """Compute the checksums of some captions."""
        return [blake.of_bytes(self._texts[row].encode()) for row in rows]

    def read(self, rows: Sequence[int], folder: Path | None = None) -> list[str]:
        """List some captions."""
        return [self._texts[row] for row in rows]


def gallery_kind(manifest: Manifest) -> Kind:
    """What a manifest's gallery items are: images or clips."""
    return "clips" if manifest.kind == "video" else "images"


def of(manifest: Manifest, kind: Kind) -> Sources:
    """List a manifest's images, clips or captions; InputError for images of a manifest of clips, or the reverse."""
    if kind == "captions":
        return Captions(manifest)
    if kind != gallery_kind(manifest):
        raise InputError(f"the data set {manifest.dataset} holds {gallery_kind(manifest)}, not {kind}")
    return Gallery(manifest)
