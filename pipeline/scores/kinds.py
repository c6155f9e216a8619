"""Where a system's scores come from: a matrix, vectors, several matrices fused, or candidates ordered anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pipeline.errors import InputError
from pipeline.fusion import FUSIONS
from pipeline.fusion.folded import Folded
from pipeline.retrieval.blocks import Ids
from pipeline.retrieval.directions import Directions
from pipeline.retrieval.similarity import PerDirection, Similarity, as_similarity, select
from pipeline.scores import reranked
from pipeline.scores.layout import DIRECTIONS
from pipeline.scores.reranked import Scored

if TYPE_CHECKING:
    import zarr

    from pipeline.scores.system import System


class Kind(Protocol):
    """Gives a system's scores."""

    def scores(self, system: System) -> Similarity | PerDirection:
        """Open the scores.

        Args:
            system: The system whose kind it is.

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

    def scores(self, system: System) -> Similarity | PerDirection:
        """Give them, see `Kind.scores`."""
        return self.source


@dataclass(frozen=True)
class View:
    """Some rows and columns of another system."""

    of: System
    images: Ids
    captions: Ids

    def scores(self, system: System) -> Similarity | PerDirection:
        """Select from the other's, see `Kind.scores`."""
        return select(self.of.scores, self.images, self.captions)


@dataclass(frozen=True)
class Matrix:
    """A stored matrix [I, C]."""

    values: zarr.Array
    method, weights, each = None, (), ()

    @property
    def matrices(self) -> tuple[zarr.Array, ...]:
        """The matrix alone."""
        return (self.values,)

    def scores(self, system: System) -> Similarity | PerDirection:
        """Open the matrix, see `Kind.scores`."""
        return as_similarity(self.values)


@dataclass(frozen=True)
class Vectors:
    """Stored vectors, whose inner products are computed block by block."""

    def scores(self, system: System) -> Similarity | PerDirection:
        """Map the vectors, see `Kind.scores`."""
        from pipeline.retrieval.embeddings import Embeddings

        return Embeddings(system.vectors("image"), system.vectors("caption"), double=True)


@dataclass(frozen=True)
class Fused:
    """Stored matrices of several systems, fused query by query; or two of one system, one a direction.

    Attributes:
        matrices: zarr arrays [I, C], those of a member after each other.
        method: The fusion, or `DIRECTIONS`.
        weights: A weight for each member.
        each: How many of the matrices each member has: 1, or 2 for one for each direction.
    """

    matrices: tuple[zarr.Array, ...]
    method: str
    weights: tuple[float, ...]
    each: tuple[int, ...]

    def scores(self, system: System) -> Similarity | PerDirection:
        """Fuse the matrices, see `Kind.scores`."""
        stored = [as_similarity(matrix) for matrix in self.matrices]
        if self.method == DIRECTIONS:
            return Directions(*stored)  # type: ignore[arg-type]
        members = iter(stored)
        sources = [next(members) if count == 1 else Directions(next(members), next(members))  # type: ignore[arg-type]
                   for count in self.each]
        fused = FUSIONS[self.method](sources, list(self.weights))
        if system.protocol is None:
            return fused
        folds = reranked.folds(system.protocol, system.caption_image, len(system.image_ids))
        return Folded(fused, folds, system.protocol.name)


@dataclass(frozen=True)
class Candidates:
    """A retriever's best candidates of each query, ordered anew by another scorer.

    Attributes:
        retriever: The system that orders all others.
        found: The candidates of both directions, and of each language; {} where they were sought among distractors.
    """

    retriever: System
    found: Mapping[str, Scored]

    def scores(self, system: System) -> Similarity | PerDirection:
        """Order the candidates, see `Kind.scores`."""
        if not self.found:
            raise InputError(f"{system.path}: was reranked among distractors; name them with --distractors")
        return reranked.source(self.retriever.scores, self.found, system.caption_image, system.made_from[reranked.KEY])

    def found_in(self, system: System, pool: tuple[int, int]) -> Mapping[str, Scored]:
        """Read the candidates that were sought in a pool [I', C'] of the system and distractors."""
        import zarr

        return self.found or reranked.read(system.path, zarr.open_group(system.path, mode="r", zarr_format=3), pool)
