"""Embed images and captions with a dual encoder, a manifest's piece by piece. Pieces that are done
are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pipeline.artefacts import Draft
from pipeline.artefacts.pieces import KeptPieces
from pipeline.compute.tasks import Executor, Wanted
from pipeline.dual_encoders import load
from pipeline.dual_encoders.base import DualEncoder, Pixels, Usage
from pipeline.dual_encoders.record import identity
from pipeline.files import images, remote
from pipeline.files.digest import digest
from pipeline.files.gallery_file import GalleryFile
from pipeline.manifest import Manifest, Split
from pipeline.parts.errors import InputError, refusing
from pipeline.systems.scores import layout
from pipeline.systems.scores.made import Made

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
    vectors, photographs = [], []
    with ThreadPoolExecutor() as threads:  # decoding and resizing let go of Python's lock
        for start in range(0, len(files), batch_size):
            if not wanted():
                raise InputError("the run that wanted these images is over")
            batch = list(
                threads.map(lambda file: prepared(encoder, file), files[start : start + batch_size])
            )
            vectors.append(encoder.embed_images([pixels for pixels, _ in batch]))
            photographs += [photograph for _, photograph in batch]
    return Piece(
        np.concatenate(vectors),
        embed_captions(encoder, captions, batch_size),
        np.array(encoder.is_cut(captions)),
        np.array(photographs),
    )


def prepared(encoder: DualEncoder, file: GalleryFile) -> tuple[Pixels, str]:
    """Read and prepare an image: the network's inputs, and SHA-256 of the file."""
    with refusing(
        (OSError, images.ImageError),
        lambda error: (
            f"{file.place}: "
            f"{getattr(error, 'strerror', None) or error}; replace it, or leave the image out of the manifest"
        ),
    ):
        content = file.content()
        return encoder.prepare(images.decode(file.path, content)), hashlib.sha256(
            content
        ).hexdigest()


def embed_captions(encoder: DualEncoder, captions: Sequence[str], batch_size: int) -> np.ndarray:
    """Embed captions: unit vectors, float32 [C, d]. Those of like length go together, with less
    padding.
    """
    order = sorted(range(len(captions)), key=lambda row: len(captions[row]))
    encoded = np.concatenate(
        [
            encoder.embed_captions([captions[row] for row in order[start : start + batch_size]])
            for start in range(0, len(order), batch_size)
        ]
    )
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
    parts = [part for split in job.splits for part in split.pieces(AT_ONCE)]
    tasks = [
        _Task(job.model, job.usage, same, job.files(part), part.captions, job.batch_size)
        for part in parts
    ]
    made_from = {role: each.identity for role, each in draft.record.made_from.items()}
    kept = KeptPieces(
        path,
        {
            "encoder": same,
            "manifest": job.manifest.digest,
            "made_from": made_from,
            "versions": draft.record.versions,
            "splits": [split.name for split in job.splits],
            "at_once": AT_ONCE,
        },
    )
    _opened[:] = [(same, encoder)] if executor is None else []
    try:
        kept.run(
            _embed,
            tasks,
            executor,
            lambda number, before: progress(len(parts[number].image_ids), before),
        )
        described, dimension = _described(
            job.splits, (Piece(**arrays) for arrays in kept.all(len(parts)))
        )
        with layout.writing_vectors(draft, job.splits, dimension, made(described)) as (
            images,
            captions,
        ):
            row = column = 0
            for piece in (Piece(**arrays) for arrays in kept.all(len(parts))):
                images[row : row + len(piece.images)] = piece.images
                captions[column : column + len(piece.captions)] = piece.captions
                row, column = row + len(piece.images), column + len(piece.captions)
    finally:
        _opened.clear()
    kept.remove()


def _embed(task: _Task, wanted: Wanted) -> dict[str, np.ndarray]:
    if not _opened or _opened[0][0] != task.identity:
        encoder = load(task.model, task.usage)
        _opened[:] = [(identity(task.model, encoder), encoder)]
    if _opened[0][0] != task.identity:
        raise InputError(f"{task.model}: is another encoder than when the run began; run again")
    return embed_part(
        _opened[0][1], task.files, task.captions.tolist(), task.batch_size, wanted
    )._asdict()


def _described(
    splits: Sequence[Split], pieces: Iterator[Piece]
) -> tuple[dict[str, dict[str, Any]], int]:
    """What is recorded of each split, and the length of the vectors."""
    dimension, of_splits = 0, {}
    for split in splits:
        described = list(
            islice(
                (
                    (piece.photographs.tolist(), int(piece.cut.sum()), piece.images.shape[1])
                    for piece in pieces
                ),
                -(-len(split.image_ids) // AT_ONCE),
            )
        )
        dimension = described[0][2]
        of_splits[split.name] = {
            "captions": len(split.captions),
            "cut_captions": sum(cut for _, cut, _ in described),
            "content": digest([each for photographs, _, _ in described for each in photographs]),
        }
    return of_splits, dimension
