"""Embed or score a data set with a head piece by piece, here or on workers. Finished pieces are
kept in files.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.foundation.artefacts.pieces import Arrays, KeptPieces
from pipeline.foundation.compute.tasks import Executor, Wanted
from pipeline.foundation.evaluation.retrieval.blocks import Ids
from pipeline.foundation.manifest import Split
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.make.heads.base import Interaction
from pipeline.make.training.head import HeadUse, OpenHead, kept_open
from pipeline.make.training.scoring import AT_ONCE as SCORED, embed_captions, embed_images
from pipeline.make.training.source import ImageSource, ItemReader

# Images that are embedded together with their captions.
WITH_CAPTIONS = 2048
# About how many images, or captions, a piece has if images and captions are in different pieces.
AT_ONCE = 1024
# About how many images late interaction compares with all captions in a piece.
COMPARED = 2048

# A piece's array of unknown words and all words, int64 [C, 2].
WORDS = "words"

Progress = Callable[[int, bool], object]


class Piece(NamedTuple):
    """What one task embeds or scores."""

    split: str  # the split
    images: Ids  # int64, places of images in the split
    captions: Ids  # int64, places of captions in the split


class _Task(NamedTuple):
    use: HeadUse
    identity: str
    batch_size: int
    piece: Piece


class _WhileWanted(ItemReader):
    """Reads images as long as the result of the task is wanted."""

    def __init__(self, source: ImageSource, wanted: Wanted) -> None:
        self.source = source
        self.wanted = wanted

    def read(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not self.wanted():
            raise InputError("the run that wanted these images is over")
        return self.source.read(rows)


def with_captions(split: Split) -> list[Piece]:
    """Divide a split into pieces of images with their captions."""
    owner = split.caption_image.clip(0) // WITH_CAPTIONS
    images = _cut(np.arange(len(split.image_ids)), WITH_CAPTIONS)
    order = np.argsort(owner, kind="stable")
    borders = np.searchsorted(owner[order], np.arange(1, len(images)))
    captions = np.split(order, borders)
    return [Piece(split.name, *both) for both in zip(images, captions, strict=True)]


def apart(opened: OpenHead, split: Split, batch_size: int) -> list[Piece]:
    """Divide a split into pieces of images and pieces of captions, in the same batches as without
    pieces.
    """
    size = _whole_batches(AT_ONCE, batch_size)
    lengths = []
    text = opened.head.text
    parts = zip(_cut(split.captions, size), _cut(split.caption_ids, size), strict=True)
    for texts, ids in parts:
        lengths.append(text.captions(texts, ids).lengths)
    order = np.argsort(np.concatenate(lengths), kind="stable")
    none = np.zeros(0, np.int64)
    pieces = []
    for images in _cut(np.arange(len(split.image_ids)), size):
        pieces.append(Piece(split.name, images, none))
    for captions in _cut(order, size):
        pieces.append(Piece(split.name, none, captions))
    return pieces


def against_all(opened: OpenHead, split: Split, batch_size: int) -> list[Piece]:
    """Divide a split into pieces of images that are scored with all its captions."""
    size = SCORED
    if isinstance(opened.head.model, Interaction):
        size = _whole_batches(COMPARED, batch_size)
    captions = np.arange(len(split.caption_ids))
    parts = _cut(np.arange(len(split.image_ids)), size)
    return [Piece(split.name, images, captions) for images in parts]


def _whole_batches(about: int, batch_size: int) -> int:
    return max(1, about // batch_size) * batch_size


def _cut(values: np.ndarray, size: int) -> list[np.ndarray]:
    return [values[start : start + size] for start in range(0, len(values), size)]


def kept(
    path: Path, opened: OpenHead, device: str, batch_size: int, made_from: Mapping[str, Any]
) -> KeptPieces:
    """Find the pieces that an earlier run left."""
    asked = {
        "made_from": dict(made_from),
        "device": device,
        "batch_size": batch_size,
        "versions": dict(opened.head.artefact.request.versions()),
    }
    return KeptPieces(path, asked)


def run(
    opened: OpenHead,
    pieces: Sequence[Piece],
    kept_pieces: KeptPieces,
    batch_size: int,
    device: str,
    executor: Executor | None = None,
    progress: Progress = lambda images, before: None,
    words: Mapping[str, np.ndarray] | None = None,
) -> Iterator[tuple[Piece, Arrays]]:
    """Embed or score the pieces that are missing, and read the arrays of all: `images` and
    `captions`, or `scores`.
    """
    use = _on_any_worker(opened.use, device)
    if executor is None:
        kept_open[:] = [replace(opened, use=use)]
    tasks = [_Task(use, opened.identity, batch_size, piece) for piece in pieces]

    def advance(number: int, before: bool) -> None:
        progress(len(pieces[number].images), before)

    arrays_of_pieces = kept_pieces.run(_computed, tasks, executor, advance)
    for piece, arrays in zip(pieces, arrays_of_pieces, strict=True):
        if WORDS in arrays and words is not None:
            words[piece.split][piece.captions] = arrays[WORDS]
        yield piece, {name: array for name, array in arrays.items() if name != WORDS}


def _on_any_worker(use: HeadUse, device: str) -> HeadUse:
    """A use with absolute paths, and the device of its tasks."""
    images_folder = use.images_folder
    if images_folder is not None:
        images_folder = images_folder.absolute()
    return replace(
        use,
        paths=Paths(use.paths.root.absolute()),
        folder=use.folder.absolute(),
        images_folder=images_folder,
        device=device,
    )


def _computed(task: _Task, wanted: Wanted) -> Arrays:
    """The unit vectors of a piece's images and captions, or the scores of a head without
    embeddings.
    """
    opened = _opened(task.use)
    if opened.identity != task.identity:
        kept_open.clear()
        raise InputError(
            f"{task.use.folder}: its head or images changed since the run began; run again"
        )
    head = opened.head
    split = opened.split(task.piece.split)
    piece = task.piece
    batch_size = task.batch_size
    reader = _WhileWanted(opened.source, wanted)
    rows = split.store_rows[piece.images]
    if not head.embeds:
        part = replace(split, image_ids=split.image_ids[piece.images], store_rows=rows)
        scored = {"scores": head.score(reader, part, batch_size)}
        if piece.images[0] == 0:  # all pieces have the same captions
            scored[WORDS] = head.text.captions(split.captions, split.caption_ids).unknown()
        return scored
    arrays = {}
    if len(piece.images):
        arrays["images"] = embed_images(head.model, reader, rows, batch_size)
    if len(piece.captions):
        texts = split.captions[piece.captions]
        captions = head.text.captions(texts, split.caption_ids[piece.captions])
        arrays["captions"] = embed_captions(head.model, captions, batch_size)
        arrays[WORDS] = captions.unknown()
    return arrays


def _opened(use: HeadUse) -> OpenHead:
    """The head and data set of a use, which an earlier task may have opened."""
    for opened in kept_open:
        if opened.use == use:
            return opened
    return OpenHead.open(use)


def vectors(pieces: Iterator[tuple[Piece, Arrays]], split: Split) -> tuple[np.ndarray, np.ndarray]:
    """Put the unit vectors of a split's pieces together: images [I, d] and captions [C, d],
    float32, in its order.
    """
    whole: dict[str, np.ndarray] = {}
    lengths = {"images": len(split.image_ids), "captions": len(split.caption_ids)}
    for piece, arrays in pieces:
        for side, values in arrays.items():
            if side not in whole:
                whole[side] = np.empty((lengths[side], values.shape[1]), np.float32)
            whole[side][getattr(piece, side)] = values
    return whole["images"], whole["captions"]


def matrix(pieces: Iterator[tuple[Piece, Arrays]], split: Split) -> np.ndarray:
    """Put the scores of a split's pieces together: float32 [I, C]."""
    whole = np.empty((len(split.image_ids), len(split.caption_ids)), np.float32)
    for piece, arrays in pieces:
        whole[piece.images] = arrays["scores"]
    return whole
