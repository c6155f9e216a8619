"""The systems that are asked: a trained head or a dual encoder, which embed images and captions in
one space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.image_ids import rows_of
from pipeline.foundation.manifest.photo_numbers import trained_on
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.made import Made
from pipeline.make import training
from pipeline.make.dual_encoders import DualEncoder, embedding, record as encoder_record
from pipeline.make.text.tokens import TokenText, encode
from pipeline.make.training import made_of_head


@dataclass
class OfHead:
    """A head, and a data set's images as it reads them."""

    opened: training.OpenHead  # the head, open for the images' data set
    batch_size: int  # images or captions at once
    rows: np.ndarray = field(init=False, repr=False)

    def find(self, files: Sequence[str], place: Path) -> np.ndarray:
        """Look for images with features by file name, COCO's number or image id: bool [I], whether
        each has some.

        place: the file that names them, for messages. Raises InputError if none has any.
        """
        source = self.opened.source
        row_of_file = rows_of(files, self.opened.manifest, place)
        self.rows = np.array([-1 if row is None else row for row in row_of_file])
        stored = (self.rows >= 0) & source.done[self.rows]
        self.rows = self.rows[stored]
        if not stored.any():
            raise InputError(
                f"{source.path}: has features of none of the images of {place}; name their data set with "
                "--images-of, or extract them"
            )
        return stored

    def images(self) -> np.ndarray:
        """Embed the images that were found: unit vectors, float32 [I, d]."""
        self.opened.source.check(self.rows)
        return self.opened.head.embed_images(self.opened.source, self.rows, self.batch_size)

    def captions(self, captions: Sequence[str]) -> np.ndarray:
        """Embed captions: unit vectors, float32 [C, d]."""
        return self.opened.head.embed_captions(captions, self.batch_size)

    def reads(self, captions: Sequence[str]) -> list[Any]:
        """Convert captions to the head's tokens; two captions with unknown words can have the same
        tokens.
        """
        text = self.opened.head.text
        if isinstance(text, TokenText):
            return encode(text, captions)
        return list(captions)

    def cut(self, captions: Sequence[str]) -> tuple[int, int]:
        """How many captions are longer than the head's limit, and this limit in words or word
        pieces.
        """
        text = self.opened.head.text
        if not isinstance(text, TokenText):
            return 0, 0
        limit = text.longest - 2
        lengths = [sum(map(len, words)) for words in text.split(captions)]
        return sum(length > limit for length in lengths), limit

    @property
    def made_from(self) -> Made:
        """The record of what makes the vectors, as beside scores."""
        opened = self.opened
        split_of_image = opened.manifest.images["split"].to_numpy()
        splits = list(dict.fromkeys(split_of_image[self.rows].tolist()))
        return made_of_head.of_rows(
            opened.head.artefact, opened.manifest, opened.source, splits, self.rows
        )

    def trained_on(self, own: Manifest) -> int:
        """How many of the found images it was trained on, by photograph; own: the manifest that it
        was trained on.
        """
        images = self.opened.manifest
        if own.digest == images.digest:
            splits = own.images["split"].to_numpy()[self.rows]
            return int((splits == "train").sum())
        ids = images.images["image_id"].to_numpy()[self.rows]
        return len(trained_on(own, images, ids))


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
        """Look for images by file name, COCO's number or image id, see `OfHead.find`."""
        row_of_file = rows_of(files, self.manifest, place)
        self.rows = np.array([row for row in row_of_file if row is not None])
        return np.array([row is not None for row in row_of_file])

    def images(self) -> np.ndarray:
        """Embed the images that were found."""
        files = self.manifest.gallery(rows=self.rows.tolist())
        vectors = []
        for start in range(0, len(files), self.batch_size):
            batch = files[start : start + self.batch_size]
            pixels = [embedding.prepared(self.encoder, file)[0] for file in batch]
            vectors.append(self.encoder.embed_images(pixels))
        return np.concatenate(vectors)

    def captions(self, captions: Sequence[str]) -> np.ndarray:
        """Embed captions."""
        return embedding.embed_captions(self.encoder, captions, self.batch_size)

    def reads(self, captions: Sequence[str]) -> list[Any]:
        """Convert captions to the encoder's tokens; captions that differ in case alone can have the
        same tokens.
        """
        return self.encoder.tokens(captions)

    def cut(self, captions: Sequence[str]) -> tuple[int, int]:
        """How many captions are longer than the encoder's limit, and this limit in word pieces."""
        return sum(self.encoder.is_cut(captions)), self.encoder.token_limit

    @property
    def made_from(self) -> Made:
        """The record of what makes the vectors, as beside stored ones."""
        return encoder_record.made_from(
            self.name, self.model, self.encoder, None, self.manifest, splits={}
        )

    def trained_on(self, own: Manifest) -> int | None:
        """None: the images that it was trained on are not known."""
        return None


# A system that is asked: `find` looks for images, `images` then embeds those that it found.
System = OfHead | OfEncoder
