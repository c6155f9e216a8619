"""A similarity matrix as a source of blocks: read or computed piece by piece, so that a pool of any size fits
in memory.

Rows are images, columns are captions. `stored.py` and `zarr_matrix.py` read, `embeddings.py` multiplies,
`combining.py` sums.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from pipeline.errors import InputError
from pipeline.retrieval.blocks import Cells, Ids, Index, as_slice
from pipeline.retrieval.stored import Matrix, open_npy, to_array

Direction: TypeAlias = Literal["i2t", "t2i"]


class EqualRows(NamedTuple):
    """Labels that rows share if and only if they are equal: of images int64 [I], of captions int64 [C]."""

    images: Ids
    captions: Ids


@runtime_checkable
class Similarity(Protocol):
    """A matrix [I images, C captions] that is read in blocks; bigger is more similar, and every value is
    finite.

    `equal` is None where a cell always reads back as the same number. Where cells are computed, the same pair
    may come out differently by rounding from one block to another; then `equal` says which rows and columns
    must agree.
    """

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def equal(self) -> EqualRows | None: ...

    def block(self, images: Index, captions: Index) -> Cells:
        """These rows and columns, float32 or float64; if `equal` is None, maybe a view of the storage: do not
        write into it.
        """
        ...

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        """The n cells (images[k], captions[k])."""
        ...

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """Cuts `shape` (all of the matrix, or of a selection) into blocks as this source is best read, each
        of at most `block_bytes` where the storage allows.
        """
        ...


class WholeQueries:
    """A matrix [I, C] for one direction whose grid has blocks of whole queries, each with all its candidates.

    by_image: whether queries are images, and blocks some rows; else they are captions, and blocks some columns. What a
    candidate is compared with then stands in the query's own block.
    """

    by_image: bool


@runtime_checkable
class PerDirection(Protocol):
    """Scores that depend on who asks, such as ranks among a query's candidates: one matrix for each
    direction.
    """

    @property
    def shape(self) -> tuple[int, int]: ...

    def direction(self, name: Direction, block_bytes: int) -> Similarity:
        """The matrix that ranks captions for images ("i2t"), or images for captions ("t2i")."""
        ...

    def select(self, images: Ids, captions: Ids) -> PerDirection:
        """The same scores where only these images and captions are candidates."""
        ...


class Selection:
    """Some rows and columns of another source, in any order: a fold, a split, or the order of another
    system's ids.
    """

    def __init__(self, source: Similarity, images: Ids, captions: Ids) -> None:
        self.source, self.images, self.captions = source, images, captions
        self.shape = (len(images), len(captions))

    @property
    def equal(self) -> EqualRows | None:
        rows = self.source.equal
        return None if rows is None else EqualRows(rows.images[self.images], rows.captions[self.captions])

    def block(self, images: Index, captions: Index) -> Cells:
        return self.source.block(as_slice(self.images[images]), as_slice(self.captions[captions]))

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        return self.source.pairs(self.images[images], self.captions[captions])

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        return self.source.grid(shape, block_bytes)


def select(source: Similarity | PerDirection, images: Ids, captions: Ids) -> Similarity | PerDirection:
    """These rows and columns of a source; the source itself if that is all of it, in order."""
    chosen = zip((images, captions), source.shape, strict=True)
    if all(np.array_equal(index, np.arange(size)) for index, size in chosen):
        return source
    if isinstance(source, PerDirection):
        return source.select(images, captions)
    return Selection(source, images, captions)


def as_similarity(source: object) -> Similarity | PerDirection:
    """A source from what a user has: an array, a torch tensor, a zarr array, the path of either, or a source
    already.

    A path that ends in `.npy` is memory-mapped, and never unpickled; any other path is opened as a zarr
    array. Raises `InputError` for anything else, for a shape that is not [images, captions], or for values
    that are not floats.
    """
    if isinstance(source, PerDirection):
        return source
    if isinstance(source, str | Path):
        path = Path(source)
        if path.suffix == ".npy":
            source = open_npy(path)
        else:
            from pipeline.retrieval.zarr_matrix import open_zarr

            source = open_zarr(path)
    if isinstance(source, np.ndarray) or _is(source, "torch", "Tensor"):
        return Matrix(to_array(source))  # type: ignore[arg-type]
    if _is(source, "zarr", "Array"):
        from pipeline.retrieval.zarr_matrix import ZarrMatrix

        return ZarrMatrix(source)  # type: ignore[arg-type]
    if isinstance(source, Similarity):
        return source
    raise InputError(f"cannot read similarities from {type(source).__name__}: give an array, a .npy file or a zarr "
                     "array; of a sparse matrix its .toarray()")


def _is(source: object, library: str, kind: str) -> bool:
    """Whether it is of a library's type; a library that is not imported has made nothing."""
    return library in sys.modules and isinstance(source, getattr(sys.modules[library], kind))
