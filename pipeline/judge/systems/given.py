"""Systems whose scores were computed elsewhere: read from the user's files, written as stores, and
compared again.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation.artefacts import Draft
from pipeline.foundation.artefacts.record import digest_of
from pipeline.foundation.evaluation.retrieval import Ids, PerDirection, Side, rows_of
from pipeline.foundation.evaluation.retrieval.similarity import vectors_of
from pipeline.foundation.files.compared import Step
from pipeline.foundation.files.digest import digest
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.judge.systems.requests import AddRequest
from pipeline.judge.systems.scores import layout
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.judged import Columns
from pipeline.judge.systems.scores.made import (
    GIVEN,
    GivenScores,
    Made,
    Member,
    OfGiven,
    lacking,
)
from pipeline.judge.systems.scores.system import System

# Vectors whose lengths differ from 1 by no more are unit vectors, up to rounding to 16 bits.
UNIT = 2e-3


def named(scores: str, root: Path) -> tuple[str, dict[str, str]]:
    """Name scores, as `open_system` takes them, with paths as seen from the root; and each file's
    digest.
    """
    parts = scores.split(":")
    if (root / scores).exists():
        parts = [scores]
    names = []
    files = {}
    with refusing(OSError, lambda error: f"{scores}: {error.strerror or error}"):
        for part in parts:
            path = root / part
            name = part
            if path.exists():
                name = _as_seen_from(root.resolve(), path.resolve())
                files[name] = digest_of(path)
            names.append(name)
    if not files:
        raise InputError(f"{scores}: no such file")
    return ":".join(names), files


def _as_seen_from(root: Path, path: Path) -> str:
    """A path from the root on where it is below it, or whole."""
    if path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    return str(path)


def facts(request: AddRequest, manifest: Manifest) -> OfGiven:
    """Compose what is known of a system that is made for a request."""
    member = Member(
        head=request.name,
        checkpoint=digest([GIVEN, request.name]),
        given=GivenScores(title=request.title, files=request.files),
    )
    return OfGiven(
        dataset=manifest.dataset,
        split=request.split,
        manifest=manifest.digest,
        languages=manifest.languages,
        lacks=lacking(manifest.left_out),
        member=member,
    )


def read(request: AddRequest, root: Path, manifest: Path) -> System:
    """Open the scores of a request, in the order of the images and captions of its split."""
    columns = Columns(manifest, request.split, distance=request.distance)
    if layout.is_store(root / request.scores):  # which has ids
        columns = Columns()
    system = open_system(request.scores, columns, request.normalise, root)
    known = Manifest.load(manifest)
    split = known.split(request.split)

    def rows(side: Side, wanted: Ids) -> Ids:
        return rows_of(
            system.ids(side),
            wanted,
            lambda missing: (
                f"{request.scores}: lacks {side} {missing} of the split "
                f"{split.name} of {known.dataset}; give scores of the whole split"
            ),
        )

    images = rows("image", split.image_ids)
    captions = rows("caption", split.caption_ids)
    return system.only(images, captions)


def write(
    draft: Draft, system: System, made: Made, progress: layout.Progress = lambda images: None
) -> None:
    """Write a given system as a store, with the vectors that its scores are products of if these
    have length 1.
    """
    vectors = _unit_vectors(system.scores)
    if vectors:
        layout.write_products(draft, *vectors, system, made, progress)
        return
    matrices, fusion = layout.divided(system.scores)
    if any(isinstance(matrix, PerDirection) for matrix in matrices):
        raise InputError(
            f"{system.name}: has no score for each pair, as lists of the best and reranked systems have "
            "none; give a matrix or vectors"
        )
    # The precision of the scores, so that no ties arise by rounding.
    first = slice(0, 1)
    precision = np.result_type(*(matrix.block(first, first) for matrix in matrices))
    layout.write(
        draft,
        matrices,
        system,
        made,
        fusion,
        lambda rows: progress(rows // len(matrices)),
        precision,
    )


def _unit_vectors(scores: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """The unit vectors, float32 [I, d] and [C, d], that scores are products of; None for other
    scores.
    """
    vectors = vectors_of(scores)
    if vectors is None:
        return None
    images, captions = (np.asarray(side[:], np.float32) for side in vectors)
    for side in (images, captions):
        lengths = np.linalg.norm(side, axis=1)
        if not abs(lengths - 1).max() < UNIT:
            return None
    return images, captions


def request_of(store: System) -> AddRequest:
    """Read the request that a given system was made for."""
    with refusing(
        ValueError, f"{store.path}: its record's request is none of `pipeline add`; add it again"
    ):
        return AddRequest.model_validate(store.store.record.request)


def files(made: Made, root: Path) -> Mapping[Path, str]:
    """The files of a given system, each with its recorded digest; {} for other systems."""
    if not isinstance(made, OfGiven) or made.member.given is None:
        return {}
    given = made.member.given
    return {root / name: recorded for name, recorded in given.files.items()}


def steps(made: Made, root: Path) -> Iterator[Step]:
    """Compare the files of a given system with their recorded digests; nothing for other
    systems.
    """
    for place, recorded in files(made, root).items():
        found = None
        try:
            if place.exists():
                found = digest_of(place)
        except OSError as error:  # a device, or a file that may not be read
            found = error.strerror
        yield Step(place, "SHA-256, by the record", recorded, found)
