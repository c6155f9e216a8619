"""Embed a manifest's images and captions piece by piece, here or on workers. Pieces that are done are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pipeline.compute import products
from pipeline.compute.tasks import Executor, KeptPieces, Wanted
from pipeline.dual_encoders import load
from pipeline.dual_encoders.base import DualEncoder, Usage
from pipeline.dual_encoders.embedding import Piece, embed_part
from pipeline.dual_encoders.record import identity
from pipeline.files import remote
from pipeline.files.atomic import exclusive
from pipeline.files.digest import digest
from pipeline.manifest import Manifest, Split
from pipeline.parts.errors import InputError
from pipeline.systems.scores import layout

AT_ONCE = 256
"""Images in a piece: what is lost at most when a run is cut."""
Record: TypeAlias = Callable[[Mapping[str, Mapping[str, Any]]], Mapping[str, Any]]


@dataclass(frozen=True)
class Job:
    """What is embedded, and how a worker opens the encoder."""

    model: str  # KIND:FOLDER or KIND:NAME
    usage: Usage  # how the encoder is used
    manifest: Manifest  # the images and captions
    folder: Path  # where the images' files lie
    splits: Sequence[Split]  # which of them
    batch_size: int  # images or captions at once
    products: products.Setting = "default"  # how the CPU multiplies float32 matrices, see `pipeline.compute.products`

    def files(self, part: Split) -> list[Path]:
        """List the files of some images."""
        names = self.manifest.images["file"].iloc[part.store_rows]
        return [remote.absolute(self.folder) / name for name in names]


class _Task(NamedTuple):
    model: str
    usage: Usage
    identity: str
    products: products.Setting
    files: list[Path]
    captions: list[str]
    batch_size: int


_opened: list[tuple[str, DualEncoder]] = []  # the last one, after its identity


def embed(path: Path, encoder: DualEncoder, job: Job, made_from: Record, executor: Executor | None = None,
          progress: Callable[[int, bool], object] = lambda images, before: None) -> None:
    """Embed splits into a store. An interrupted call with the same arguments goes on."""
    layout.refuse_no_vectors(path)
    with exclusive(path):
        kept = KeptPieces(path, {"encoder": identity(job.model, encoder), "manifest": job.manifest.digest,
                                 "splits": [split.name for split in job.splits], "at_once": AT_ONCE})
        try:
            parts = _run(kept, encoder, job, executor, progress)
            found, dimension = _described(job.splits, (Piece(**arrays) for arrays in kept.all(parts)))
            _compose(path, job.splits, (Piece(**arrays) for arrays in kept.all(parts)), dimension, made_from(found))
        finally:
            _opened.clear()
        kept.remove()


def _run(kept: KeptPieces, encoder: DualEncoder, job: Job, executor: Executor | None,
         progress: Callable[[int, bool], object]) -> int:
    """Embed the pieces that are missing. How many pieces there are."""
    same = identity(job.model, encoder)
    _opened[:] = [(same, encoder)] if executor is None else []
    parts = [part for split in job.splits for part in split.pieces(AT_ONCE)]
    tasks = [_Task(job.model, job.usage, same, job.products, job.files(part), part.captions, job.batch_size)
             for part in parts]
    kept.run(_embed, tasks, executor,
             lambda number, before: progress(len(parts[number].image_ids), before))
    return len(parts)


def _embed(task: _Task, wanted: Wanted) -> dict[str, np.ndarray]:
    if not _opened or _opened[0][0] != task.identity:
        products.apply(task.products)
        encoder = load(task.model, task.usage)
        _opened[:] = [(identity(task.model, encoder), encoder)]
    if _opened[0][0] != task.identity:
        raise InputError(f"{task.model}: is another encoder than when the run began; run again")
    return embed_part(_opened[0][1], task.files, task.captions, task.batch_size, wanted)._asdict()


def _described(splits: Sequence[Split], pieces: Iterator[Piece]) -> tuple[dict[str, dict[str, Any]], int]:
    """What is recorded of each split, and the length of the vectors."""
    dimension, found = 0, {}
    for split in splits:
        own = list(islice(((piece.photographs.tolist(), int(piece.cut.sum()), piece.images.shape[1])
                           for piece in pieces), -(-len(split.image_ids) // AT_ONCE)))
        dimension = own[0][2]
        found[split.name] = {"captions": len(split.captions), "cut_captions": sum(cut for _, cut, _ in own),
                             "content": digest([each for photographs, _, _ in own for each in photographs])}
    return found, dimension


def _compose(path: Path, splits: Sequence[Split], pieces: Iterator[Piece], dimension: int,
             made_from: Mapping[str, Any]) -> None:
    firsts = np.cumsum([0, *(len(split.image_ids) for split in splits)])
    owner = np.concatenate([split.caption_image + first for split, first in zip(splits, firsts, strict=False)])
    ids = [np.concatenate([getattr(split, name) for split in splits]) for name in ("image_ids", "caption_ids")]
    row = column = 0
    with layout.writing_vectors(path, ids[0], ids[1], owner, dimension, made_from) as (images, captions):
        for piece in pieces:
            images[row:row + len(piece.images)] = piece.images
            captions[column:column + len(piece.captions)] = piece.captions
            row, column = row + len(piece.images), column + len(piece.captions)
