"""Embed a manifest's images and captions piece by piece, so that a run that was cut goes on where it stopped.

    NAME.zarr.pieces/     gone once NAME.zarr is written
      request.json        a digest of what is embedded, and by which encoder
      00000.npz, …        the vectors of `AT_ONCE` images and of their captions
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from pipeline.dual_encoders.base import DualEncoder
from pipeline.dual_encoders.embedding import Piece, embed_part
from pipeline.files.atomic import replacing, write_text
from pipeline.files.digest import digest
from pipeline.files.lock import exclusive
from pipeline.manifest import Manifest, Split
from pipeline.scores import embedding_store

AT_ONCE = 256
"""Images in a piece: what is lost at most when a run is cut."""
Record: TypeAlias = Callable[[Mapping[str, Mapping[str, Any]]], Mapping[str, Any]]


def embed(path: Path, encoder: DualEncoder, manifest: Manifest, folder: Path, splits: Sequence[Split],
          batch_size: int, same: str, made_from: Record,
          progress: Callable[[int, bool], object] = lambda images, before: None) -> None:
    """Embed splits into a store. An interrupted call with the same arguments goes on.

    Args:
        path: The store.
        encoder: The encoder.
        manifest: The images.
        folder: Where their files lie.
        splits: What is embedded.
        batch_size: Images or captions at once.
        same: The encoder's identity.
        made_from: Makes the record from each split's number of captions and of cut captions, and the digest of its
            photographs.
        progress: Called for each piece with its number of images, and whether an earlier run embedded them.

    Raises:
        InputError: If an image cannot be read, the path is taken by something else, or another process writes to it.
    """
    embedding_store.refuse_other(path)
    with exclusive(path):
        _embed(path, encoder, manifest, folder, splits, batch_size, same, made_from, progress)


def _embed(path: Path, encoder: DualEncoder, manifest: Manifest, folder: Path, splits: Sequence[Split],
           batch_size: int, same: str, made_from: Record, progress: Callable[[int, bool], object]) -> None:
    kept = KeptPieces(path, {"encoder": same, "manifest": manifest.digest, "splits": [split.name for split in splits],
                             "at_once": AT_ONCE})
    number, dimension, found = 0, 0, {}
    for split in splits:
        photographs: list[str] = []
        cut = 0
        for part in divide(split):
            before = kept.read(number)
            piece = before or embed_part(encoder, manifest, folder, part, batch_size)
            if before is None:
                kept.write(number, piece)
            photographs += piece.photographs.tolist()
            number, cut, dimension = number + 1, cut + int(piece.cut.sum()), piece.images.shape[1]
            progress(len(part.image_ids), before is not None)
        found[split.name] = {"captions": len(split.captions), "cut_captions": cut, "content": digest(photographs)}
    _compose(path, splits, kept.all(number), dimension, made_from(found))
    kept.remove()


def divide(split: Split) -> list[Split]:
    """Divide a split into pieces.

    Args:
        split: The split.

    Returns:
        Its images in order, `AT_ONCE` at a time, with their captions, which stand in the order of their images.
    """
    number = np.arange(len(split.image_ids)) // AT_ONCE
    return [split.only(number == each) for each in range(int(number[-1]) + 1)]


def _compose(path: Path, splits: Sequence[Split], pieces: Iterator[Piece], dimension: int,
             made_from: Mapping[str, Any]) -> None:
    firsts = np.cumsum([0, *(len(split.image_ids) for split in splits)])
    owner = np.concatenate([split.caption_image + first for split, first in zip(splits, firsts, strict=False)])
    ids = [np.concatenate([getattr(split, name) for split in splits]) for name in ("image_ids", "caption_ids")]
    row = column = 0
    with embedding_store.writing(path, ids[0], ids[1], owner, dimension, made_from) as (images, captions):
        for piece in pieces:
            images[row:row + len(piece.images)] = piece.images
            captions[column:column + len(piece.captions)] = piece.captions
            row, column = row + len(piece.images), column + len(piece.captions)


class KeptPieces:
    """The pieces that lie beside a store which is not finished. Those of another request are removed.

    Args:
        store: The store.
        request: JSON values on which the pieces depend.
    """

    def __init__(self, store: Path, request: Mapping[str, Any]) -> None:
        self.folder = store.with_name(store.name + ".pieces")
        said, asked = self.folder / "request.json", json.dumps({"request": digest(dict(request))})
        if not said.is_file() or said.read_text(encoding="utf-8") != asked:
            self.remove()
            write_text(said, asked)

    def read(self, number: int) -> Piece | None:
        """Read a piece.

        Args:
            number: Its number.

        Returns:
            The piece; None if it is not there or damaged.
        """
        try:
            with np.load(self._file(number), allow_pickle=False) as arrays:
                return Piece(**{name: arrays[name] for name in Piece._fields})
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def all(self, count: int) -> Iterator[Piece]:
        """Read all pieces.

        Args:
            count: How many there are.

        Yields:
            The pieces in order.

        Raises:
            RuntimeError: If one vanished meanwhile.
        """
        for number in range(count):
            piece = self.read(number)
            if piece is None:
                raise RuntimeError(f"{self._file(number)}: vanished")
            yield piece

    def write(self, number: int, piece: Piece) -> None:
        """Write a piece. It appears complete or not at all.

        Args:
            number: Its number.
            piece: The piece.
        """
        with replacing(self._file(number)) as partial, partial.open("wb") as file:
            np.savez(file, **piece._asdict())

    def remove(self) -> None:
        """Remove all pieces."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:05}.npz"
