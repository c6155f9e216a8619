"""What features are made from: the images, clips or captions of a manifest, each by its id."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from pipeline.foundation.files import blake
from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.foundation.manifest.columns import PHOTOGRAPH
from pipeline.foundation.manifest.table import Manifest
from pipeline.foundation.parts.errors import InputError

Kind = Literal["images", "clips", "captions"]


class Gallery:
    """A manifest's M images or clips, in its order."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        images = manifest.images
        self.kind = gallery_kind(manifest)
        self.ids = self.image_ids = images["image_id"].to_numpy()  # int64 [M]
        self.digest = manifest.images_digest  # SHA-256 over ids and files, in order
        # The bytes of each file, int64 [M]; NO_FILE where they are not known.
        self.sizes = images["bytes"].to_numpy()
        # The checksum of each file by the manifest, str [M]; None if none is known.
        self.checksums = images[PHOTOGRAPH].to_numpy(object) if PHOTOGRAPH in images else None

    @property
    def names(self) -> list[str]:
        """What messages call each of them: the files' names in the manifest."""
        return [*self._manifest.images["file"]]

    def read_checksums(self, rows: Sequence[int], folder: Path | None = None) -> list[str]:
        """Read the files of some of the M for their checksums, "" for one that cannot be read;
        folder: as `read`.
        """
        return [blake.if_there(file) for file in self.read(rows, folder)]

    def read(self, rows: Sequence[int], folder: Path | None = None) -> list[GalleryFile]:
        """List the files of some of the M, as an engine reads them; folder: None for the
        manifest's.
        """
        return self._manifest.gallery(folder, rows)


class Captions:
    """A manifest's M captions, in its order; see `Gallery`."""

    kind: Kind = "captions"

    def __init__(self, manifest: Manifest) -> None:
        table = manifest.rows(["image_id", "caption_id", "caption"])
        self._texts: list[str] = table["caption"].tolist()
        self.ids = table["caption_id"].to_numpy()
        self.image_ids = table["image_id"].to_numpy()
        self.digest = manifest.captions_digest

    @cached_property
    def sizes(self) -> np.ndarray:
        """The captions' sizes in UTF-8, int64 [M]."""
        return np.array([len(text.encode()) for text in self._texts], np.int64)

    @cached_property
    def names(self) -> list[str]:
        """Such as "caption 55"."""
        return [f"caption {number}" for number in self.ids.tolist()]

    @cached_property
    def checksums(self) -> np.ndarray:
        """The captions' checksums, str [M]."""
        return np.array(self.read_checksums(range(len(self._texts))), object)

    def read_checksums(self, rows: Sequence[int], folder: Path | None = None) -> list[str]:
        """Compute the checksums of some captions."""
        return [blake.of_bytes(self._texts[row].encode()) for row in rows]

    def read(self, rows: Sequence[int], folder: Path | None = None) -> list[str]:
        """List some captions."""
        return [self._texts[row] for row in rows]


Sources = Gallery | Captions


def gallery_kind(manifest: Manifest) -> Kind:
    """What a manifest's gallery items are: images or clips."""
    return "clips" if manifest.kind == "video" else "images"


def of(manifest: Manifest, kind: Kind) -> Sources:
    """List a manifest's images, clips or captions; InputError for images of a manifest of clips, or
    the reverse.
    """
    if kind == "captions":
        return Captions(manifest)
    if kind != gallery_kind(manifest):
        raise InputError(
            f"the data set {manifest.dataset} holds {gallery_kind(manifest)}, not {kind}"
        )
    return Gallery(manifest)
