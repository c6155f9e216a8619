"""Where a system's scores come from: what is given, a matrix, vectors, or several matrices fused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.evaluation.retrieval.collection import Side
from pipeline.evaluation.retrieval.similarity import Directions, PerDirection, Similarity, as_similarity
from pipeline.files.digest import of_files
from pipeline.systems.fusion.methods import FUSIONS
from pipeline.systems.fusion.reranked import Folded
from pipeline.systems.scores import layout
from pipeline.systems.scores.layout import DIRECTIONS

if TYPE_CHECKING:
    import numpy as np
    import zarr

    from pipeline.evaluation.retrieval import Embeddings
    from pipeline.files.remembered import Remembered


class Kind(Protocol):
    """Gives a system's scores."""

    def scores(self) -> Similarity | PerDirection:
        """Open the scores.

        Returns:
            Scores [I, C], as `retrieval.evaluate` takes them.

        Raises:
            InputError: If they cannot be read, or not without distractors.
        """
        ...


@dataclass(frozen=True)
class Given:
    """Scores that are at hand."""

    source: Similarity | PerDirection

    def scores(self) -> Similarity | PerDirection:
        """Give them, see `Kind.scores`."""
        return self.source


@dataclass(frozen=True)
class Matrix:
    """A stored matrix [I, C]."""

    values: zarr.Array
    method, weights, each = None, (), ()

    @property
    def matrices(self) -> tuple[zarr.Array, ...]:
        """The matrix alone."""
        return (self.values,)

    def scores(self) -> Similarity | PerDirection:
        """Open the matrix, see `Kind.scores`."""
        return as_similarity(self.values)


@dataclass(frozen=True)
class Vectors:
    """Stored unit vectors, whose inner products are computed block by block.

    Attributes:
        path: The store.
        made_from: Its record, with the digests of the arrays.
        shape: How many images and captions it has.
        remembered: A cache of digests, used while files are unchanged; None to digest them each time.
    """

    path: Path
    made_from: Mapping[str, Any]
    shape: tuple[int, int]
    remembered: Remembered | None = None

    def of(self, side: Side) -> np.ndarray:
        """Map the vectors of one side, float32 [I or C, d]."""
        digests = self.remembered.of_files if self.remembered else of_files
        return layout.vectors(self.path, side, self.shape[side == "caption"], self.made_from, digests)

    def scores(self) -> Embeddings:
        """Map the vectors, see `Kind.scores`."""
        from pipeline.evaluation.retrieval.embeddings import Embeddings

        return Embeddings(self.of("image"), self.of("caption"), double=True)


@dataclass(frozen=True)
class Fused:
    """Stored matrices of several systems, fused query by query; or two of one system, one a direction.

    Attributes:
        matrices: zarr arrays [I, C], those of a member after each other.
        method: The fusion, or `DIRECTIONS`.
        weights: A weight for each member.
        each: How many of the matrices each member has: 1, or 2 for one for each direction.
        folds: Of an ensemble of reranked systems the protocol's name, and the fold of each image and caption; or None.
    """

    matrices: tuple[zarr.Array, ...]
    method: str
    weights: tuple[float, ...]
    each: tuple[int, ...]
    folds: tuple[str, tuple[Ids, Ids]] | None = None

    def scores(self) -> Similarity | PerDirection:
        """Fuse the matrices, see `Kind.scores`."""
        stored = [as_similarity(matrix) for matrix in self.matrices]
        if self.method == DIRECTIONS:
            return Directions(*stored)  # type: ignore[arg-type]
        members = iter(stored)
        sources = [next(members) if count == 1 else Directions(next(members), next(members))  # type: ignore[arg-type]
                   for count in self.each]
        fused = FUSIONS[self.method](sources, list(self.weights))
        return Folded(fused, self.folds[1], self.folds[0]) if self.folds else fused
