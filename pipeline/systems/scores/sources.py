"""Where a system's scores come from: scores in memory, stored matrices, a fusion of several, or
stored vectors.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipeline.artefacts import Artefact
from pipeline.evaluation import retrieval
from pipeline.evaluation.retrieval import Ids, Scores, Side, as_similarity
from pipeline.evaluation.retrieval.owners import NO_IMAGE
from pipeline.evaluation.retrieval.similarity import Directions
from pipeline.files.digest import of_files
from pipeline.files.remembered import Remembered
from pipeline.parts.errors import InputError
from pipeline.systems.fusion.methods import FUSIONS
from pipeline.systems.scores import layout, made, reranked

if TYPE_CHECKING:
    import zarr


@dataclass(frozen=True)
class Given:
    """Scores in memory, or computed from others."""

    scores: Callable[[], Scores]


@dataclass(frozen=True)
class Vectors:
    """Stored unit vectors, whose inner products are computed block by block."""

    store: Artefact  # the store, whose record has the digests of the arrays
    shape: tuple[int, int]  # how many images and captions it has
    remembered: Remembered | None = (
        None  # digests used while files are unchanged; None to digest them each time
    )

    def of(self, side: Side) -> np.ndarray:
        """Map the vectors of one side, float32 [I or C, d]."""
        digests = self.remembered.of_files if self.remembered else of_files
        return layout.vectors(self.store, side, self.shape[side == "caption"], digests)

    def scores(self) -> "retrieval.Embeddings":
        """Map the vectors."""
        return retrieval.Embeddings(self.of("image"), self.of("caption"), double=True)


@dataclass(frozen=True)
class Matrices:
    """A stored matrix; or two, one for each direction; or those of several systems, fused query by
    query.
    """

    matrices: "tuple[zarr.Array, ...]"  # [I, C], member by member
    how: made.Matrices | None = None  # how several are read; None for one matrix
    folds: tuple[str, tuple[Ids, Ids]] | None = (
        None  # with reranked members: the protocol's name, each item's fold
    )

    def scores(self) -> Scores:
        """Open the matrices, and fuse several."""
        stored = [as_similarity(matrix) for matrix in self.matrices]
        if self.how is None:
            return stored[0]
        if self.how.method == layout.DIRECTIONS:
            return Directions(*stored)  # type: ignore[arg-type]
        members = iter(stored)
        sources = [
            next(members) if count == 1 else Directions(next(members), next(members))  # type: ignore[arg-type]
            for count in self.how.of_each
        ]
        fused = FUSIONS[self.how.method](sources, self.how.weights)
        return reranked.Folded(fused, self.folds[1], self.folds[0]) if self.folds else fused


def matrices(path: Path, group: "zarr.Group", ids: Sequence[Ids], made_from: made.Made) -> Matrices:
    """Read the stored matrices, and check that they fit the ids and the recorded fusion."""
    held = layout.matrices(group)
    how = made_from.matrices
    wrong = [each.shape for each in held if each.shape != (len(ids[0]), len(ids[1]))]
    if wrong or len(ids[2]) != len(ids[1]):
        raise InputError(
            f"{path}: a matrix of {(wrong or [held[0].shape])[0]} with {len(ids[0])} image and "
            f"{len(ids[1])} caption ids; score again"
        )
    if len(ids[2]) and not NO_IMAGE <= ids[2].min() <= ids[2].max() < len(ids[0]):
        raise InputError(
            f"{path}: caption_image holds rows {ids[2].min()} to {ids[2].max()}, expected 0 to "
            f"{len(ids[0]) - 1}, or {NO_IMAGE} for no image; score again"
        )
    if (how is None) != (len(held) == 1) or (
        how
        and (
            how.method not in {*FUSIONS, layout.DIRECTIONS}
            or len(how.weights) != len(how.of_each)
            or not set(how.of_each) <= {1, 2}
            or sum(how.of_each) != len(held)
        )
    ):
        raise InputError(
            f"{path}: {len(held)} matrices do not fit its fusion {how and how.method!r} with "
            f"{len(how.weights) if how else 0} weights; make the ensemble again"
        )
    rules = reranked.protocol_of(made_from.protocol) if made_from.protocol else None
    folds = None if rules is None else (rules.name, reranked.folds(rules, ids[2], len(ids[0])))
    return Matrices(held, how, folds)
