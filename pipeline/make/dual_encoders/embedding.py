"""Embed images and captions with a dual encoder, a manifest's piece by piece. Pieces that are done
are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pipeline.foundation.artefacts import Draft
from pipeline.foundation.artefacts.pieces import KeptPieces
from pipeline.foundation.compute.tasks import Executor, Wanted
from pipeline.foundation.files import images, remote
from pipeline.foundation.files.digest import digest
from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.foundation.manifest import Manifest, Split
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.judge.systems.scores import layout
from pipeline.judge.systems.scores.made import Made
from pipeline.make.dual_encoders import load
from pipeline.make.dual_encoders.base import DualEncoder, Pixels, Usage
from pipeline.make.dual_encoders.record import identity

# Images in a piece: what is lost at most when a run is cut.
AT_ONCE = 256
Record: TypeAlias = Callable[[Mapping[str, Mapping[str, Any]]], Made]


class Piece(NamedTuple):
    """Some images with their captions."""

    images: np.ndarray  # unit vectors, float32 [I, d]
    captions: np.ndarray  # unit vectors, float32 [C, d]
    cut: np.ndarray  # bool [C], whether the encoder read only the beginning
    photographs: np.ndarray  # [I], SHA-256 of the images' files in hexadecimal digits


def embed_part(
    encoder: DualEncoder,
    files: Sequence[GalleryFile],
    captions: Sequence[str],
    batch_size: int,
    wanted: Callable[[], bool] = lambda: True,
) -> Piece:
    """Embed some images and their captions."""
    vectors = []
    photographs: list[str] = []
    prepare = partial(prepared, encoder)
    with ThreadPoolExecutor() as threads:  # decoding and resizing let go of Python's lock
        for start in range(0, len(files), batch_size):
            if not wanted():
                raise InputError("the run that wanted these images is over")
            together = files[start : start + batch_size]
            batch = list(threads.map(prepare, together))
            vectors.append(encoder.embed_images([pixels for pixels, _ in batch]))
            photographs += [photograph for _, photograph in batch]
    return Piece(
        images=np.concatenate(vectors),
        captions=embed_captions(encoder, captions, batch_size),
        cut=np.array(encoder.is_cut(captions)),
        photographs=np.array(photographs),
    )


def prepared(encoder: DualEncoder, file: GalleryFile) -> tuple[Pixels, str]:
    """Read and prepare an image: the network's inputs, and SHA-256 of the file."""

    def unreadable(error: Exception) -> str:
        reason = getattr(error, "strerror", None) or error
        return f"{file.place}: {reason}; replace it, or leave the image out of the manifest"

    with refusing((OSError, images.ImageError), unreadable):
        content = file.content()
        pixels = encoder.prepare(images.decode(file.path, content))
    return pixels, hashlib.sha256(content).hexdigest()


def embed_captions(encoder: DualEncoder, captions: Sequence[str], batch_size: int) -> np.ndarray:
    """Embed captions: unit vectors, float32 [C, d]. Those of like length go together, with less
    padding.
    """
    order = sorted(range(len(captions)), key=lambda row: len(captions[row]))
    batches = []
    for start in range(0, len(order), batch_size):
        together = order[start : start + batch_size]
        batch = [captions[row] for row in together]
        batches.append(encoder.embed_captions(batch))
    encoded = np.concatenate(batches)
    vectors = np.empty_like(encoded)
    vectors[order] = encoded
    return vectors


@dataclass(frozen=True)
class Job:
    """What is embedded, and how a worker opens the encoder."""

    model: str  # KIND:FOLDER or KIND:NAME
    usage: Usage  # how the encoder is used
    manifest: Manifest  # the images and captions
    folder: Path  # where the images' files lie
    splits: Sequence[Split]  # which of them
    batch_size: int  # images or captions at once

    def files(self, part: Split) -> list[GalleryFile]:
        """List the files of some images."""
        return self.manifest.gallery(remote.absolute(self.folder), part.store_rows.tolist())


class _Task(NamedTuple):
    model: str
    usage: Usage
    identity: str
    files: list[GalleryFile]
    captions: np.ndarray  # StringDType
    batch_size: int


_opened: list[tuple[str, DualEncoder]] = []  # the last one, after its identity


def embed(
    path: Path,
    draft: Draft,
    encoder: DualEncoder,
    job: Job,
    made: Record,
    executor: Executor | None = None,
    progress: Callable[[int, bool], object] = lambda images, before: None,
) -> None:
    """Embed splits into the draft of a store. Pieces are kept beside its `path`; an interrupted
    call is resumed.
    """
    same = identity(job.model, encoder)
    parts: list[Split] = []
    for split in job.splits:
        parts += split.pieces(AT_ONCE)
    tasks = []
    for part in parts:
        files = job.files(part)
        tasks.append(_Task(job.model, job.usage, same, files, part.captions, job.batch_size))
    made_from = {role: reference.identity for role, reference in draft.record.made_from.items()}
    needed = {
        "encoder": same,
        "manifest": job.manifest.digest,
        "made_from": made_from,
        "versions": draft.record.versions,
        "splits": [split.name for split in job.splits],
        "at_once": AT_ONCE,
    }
    pieces = KeptPieces(path, needed)

    def on_piece(number: int, before: bool) -> None:
        progress(len(parts[number].image_ids), before)

    _opened.clear()
    if executor is None:
        _opened.append((same, encoder))
    try:
        pieces.run(_embed, tasks, executor, on_piece)
        described, dimension = _described(job.splits, _pieces(pieces, len(parts)))
        facts = made(described)
        with layout.writing_vectors(draft, job.splits, dimension, facts) as (images, captions):
            row = column = 0
            for piece in _pieces(pieces, len(parts)):
                images[row : row + len(piece.images)] = piece.images
                captions[column : column + len(piece.captions)] = piece.captions
                row += len(piece.images)
                column += len(piece.captions)
    finally:
        _opened.clear()
    pieces.remove()


def _pieces(stored: KeptPieces, count: int) -> Iterator[Piece]:
    """The pieces that are done, one in memory at a time."""
    for arrays in stored.all(count):
        yield Piece(**arrays)


def _embed(task: _Task, wanted: Wanted) -> dict[str, np.ndarray]:
    if not _opened or _opened[0][0] != task.identity:
        encoder = load(task.model, task.usage)
        _opened[:] = [(identity(task.model, encoder), encoder)]
    if _opened[0][0] != task.identity:
        raise InputError(f"{task.model}: is another encoder than when the run began; run again")
    _, encoder = _opened[0]
    piece = embed_part(encoder, task.files, task.captions.tolist(), task.batch_size, wanted)
    return piece._asdict()


def _described(
    splits: Sequence[Split], pieces: Iterator[Piece]
) -> tuple[dict[str, dict[str, Any]], int]:
    """What is recorded of each split, and the length of the vectors."""
    dimension = 0
    of_splits = {}
    for split in splits:
        photographs: list[str] = []
        cut = 0
        count = -(-len(split.image_ids) // AT_ONCE)
        for piece in islice(pieces, count):
            photographs += piece.photographs.tolist()
            cut += int(piece.cut.sum())
            dimension = piece.images.shape[1]
        of_splits[split.name] = {
            "captions": len(split.captions),
            "cut_captions": cut,
            "content": digest(photographs),
        }
    return of_splits, dimension
