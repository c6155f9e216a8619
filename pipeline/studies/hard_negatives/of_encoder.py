"""The vectors of a dual encoder as it comes, such as CLIP, for questions about the image files of a data set."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.dual_encoders import embedding, record
from pipeline.dual_encoders.base import DualEncoder
from pipeline.features.importers.ids import rows_of
from pipeline.manifest import Manifest


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
        return record.made_from(self.name, self.model, self.encoder, None, self.manifest, {})

    def trained_on(self, own: Manifest) -> int | None:
        """Give None: which images it was trained on is not known, see `System.trained_on`."""
        return None
