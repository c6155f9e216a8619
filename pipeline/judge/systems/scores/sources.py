"""Where a system's scores come from: scores in memory, stored matrices, a fusion of several, or
stored vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.retrieval import Ids, Scores, Side, as_similarity
from pipeline.foundation.evaluation.retrieval.owners import NO_IMAGE
from pipeline.foundation.evaluation.retrieval.similarity import Directions
from pipeline.foundation.files.digest import of_files
from pipeline.foundation.parts.errors import InputError
from pipeline.judge import systems
from pipeline.judge.systems import scores as of_scores
from pipeline.judge.systems.scores import layout
from pipeline.judge.systems.scores.made import Made

if TYPE_CHECKING:
    import zarr

    from pipeline.foundation.artefacts import Artefact
    from pipeline.foundation.files.remembered import Remembered


@dataclass(frozen=True)
class Given:
    """Scores in memory, or computed from others."""

    scores: Callable[[], Scores]


@dataclass(frozen=True)
class Vectors:
    """Stored unit vectors, whose inner products are computed block by block."""

    store: Artefact  # the store, whose record has the digests of the arrays
    shape: tuple[int, int]  # how many images and captions it has
    # digests used while files are unchanged; None to digest them each time
    remembered: Remembered | None = None

    def of(self, side: Side) -> np.ndarray:
        """Map the vectors of one side, float32 [I or C, d]."""
        digests: layout.Digests = of_files
        if self.remembered:
            digests = self.remembered.of_files
        images, captions = self.shape
        length = images if side == "image" else captions
        return layout.vectors(self.store, side, length, digests)

    def scores(self) -> retrieval.Embeddings:
        """Map the vectors."""
        return retrieval.Embeddings(self.of("image"), self.of("caption"), double=True)


@dataclass(frozen=True)
class Matrices:
    """A stored matrix; or two, one for each direction; or those of several systems, fused query by
    query.
    """

    matrices: tuple[zarr.Array, ...]  # [I, C], member by member
    how: layout.Matrices | None = None  # how several are read; None for one matrix
    # with reranked members: the protocol's name, each item's fold
    folds: tuple[str, tuple[Ids, Ids]] | None = None

    def scores(self) -> Scores:
        """Open the matrices, and fuse several."""
        stored = [as_similarity(matrix) for matrix in self.matrices]
        if self.how is None:
            return stored[0]
        if self.how.method == layout.DIRECTIONS:
            return Directions(*stored)  # type: ignore[arg-type]
        members: list[Scores] = []
        matrices = iter(stored)
        for count in self.how.of_each:
            if count == 1:
                members.append(next(matrices))
            else:
                members.append(Directions(next(matrices), next(matrices)))  # type: ignore[arg-type]
        fused = systems.fusion.methods.FUSIONS[self.how.method](members, self.how.weights)
        if self.folds is None:
            return fused
        protocol, folds = self.folds
        return of_scores.reranked.Folded(fused, folds, protocol)


def matrices(store: Artefact, group: zarr.Group, ids: Sequence[Ids], made: Made) -> Matrices:
    """Read the stored matrices, and check that they fit the ids and the recorded fusion."""
    path = store.folder
    image_ids, caption_ids, caption_image = ids
    images = len(image_ids)
    captions = len(caption_ids)
    stored = layout.matrices(group)
    how = layout.how_read(store)
    misshapen = [matrix.shape for matrix in stored if matrix.shape != (images, captions)]
    if misshapen or len(caption_image) != captions:
        shape = stored[0].shape
        if misshapen:
            shape = misshapen[0]
        raise InputError(
            f"{path}: a matrix of {shape} with {images} image and {captions} caption ids; "
            "score again"
        )
    if len(caption_image):
        first = caption_image.min()
        last = caption_image.max()
        if first < NO_IMAGE or last >= images:
            raise InputError(
                f"{path}: caption_image holds rows {first} to {last}, expected 0 to "
                f"{images - 1}, or {NO_IMAGE} for no image; score again"
            )
    if not _fits(how, len(stored)):
        method = None
        weights = 0
        if how:
            method = how.method
            weights = len(how.weights)
        raise InputError(
            f"{path}: {len(stored)} matrices do not fit its fusion {method!r} with "
            f"{weights} weights; make the ensemble again"
        )
    if made.protocol is None:
        return Matrices(stored, how)
    rules = of_scores.reranked.protocol_of(made.protocol)
    folds = of_scores.reranked.folds(rules, caption_image, images)
    return Matrices(stored, how, (rules.name, folds))


def _fits(how: layout.Matrices | None, count: int) -> bool:
    """Whether a recorded fusion is of so many matrices, by a method that exists."""
    if how is None:
        return count == 1
    is_known = how.method in systems.fusion.methods.FUSIONS or how.method == layout.DIRECTIONS
    has_weights = len(how.weights) == len(how.of_each)
    has_matrices = set(how.of_each) <= {1, 2} and sum(how.of_each) == count
    return count != 1 and is_known and has_weights and has_matrices
