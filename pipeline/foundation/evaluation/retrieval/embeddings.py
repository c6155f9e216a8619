"""Similarities as inner products of two sets of embeddings, multiplied in blocks and never kept
whole.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pipeline.foundation.evaluation.retrieval import blocks
from pipeline.foundation.evaluation.retrieval.blocks import Cells, Ids, Index
from pipeline.foundation.evaluation.retrieval.similarity import (
    EqualRows,
    OfVectors,
    WholeQueries,
    open_npy,
    to_array,
)
from pipeline.foundation.parts.errors import InputError

if TYPE_CHECKING:
    import torch


class Joined:
    """Arrays [n, D] of one type, one below another, as one array [sum of n, D]; they are not
    copied.
    """

    ndim = 2

    def __init__(self, parts: Sequence[np.ndarray]) -> None:
        self.parts = parts
        self.ends = np.cumsum([len(part) for part in parts])
        self.shape = (int(self.ends[-1]), parts[0].shape[1])
        self.dtype = parts[0].dtype
        self.itemsize = parts[0].itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> np.ndarray:
        rows, columns = _rows_and_columns(index)
        if isinstance(rows, slice):
            first, last, _ = rows.indices(len(self))
            parts = []
            for part, start in self._placed():
                of_part = slice(max(0, first - start), max(0, last - start))
                parts.append(part[of_part, columns])
            return np.concatenate(parts)
        out = np.empty((len(rows), self.shape[1]), self.dtype)
        for part, start in self._placed():
            inside = np.flatnonzero((rows >= start) & (rows < start + len(part)))
            out[inside] = part[rows[inside] - start]
        return out[:, columns]

    def _placed(self) -> list[tuple[np.ndarray, int]]:
        starts = [int(end) - len(part) for part, end in zip(self.parts, self.ends, strict=True)]
        return list(zip(self.parts, starts, strict=True))


class Unit:
    """Vectors [N, D] of length 1: rows of another array, each divided by its length when it is
    read.
    """

    ndim = 2

    def __init__(self, vectors: "np.ndarray | Joined", what: str) -> None:
        """Measure the lengths, in float64; a vector that has no direction is refused."""
        self.vectors = vectors
        self.shape = vectors.shape
        self.dtype: np.dtype[np.floating[Any]] = np.dtype(np.float32)
        if vectors.itemsize == 8:
            self.dtype = np.dtype(np.float64)
        self.itemsize = self.dtype.itemsize
        lengths = []
        for part in _parts(*vectors.shape):
            lengths.append(np.linalg.norm(np.asarray(vectors[part], np.float64), axis=1))
        self.lengths = np.concatenate(lengths)
        undirected = np.flatnonzero(~(self.lengths > 0) | np.isinf(self.lengths))
        if len(undirected):
            row = undirected[0]
            raise InputError(
                f"{what}: row {row} has the length {self.lengths[row]}, by which it cannot be divided"
            )

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, index: Any) -> np.ndarray:
        rows, columns = _rows_and_columns(index)
        values = np.asarray(self.vectors[rows, columns], np.float64) / self.lengths[rows, None]
        return values.astype(self.dtype)


def _rows_and_columns(index: Any) -> tuple[Any, Any]:
    if isinstance(index, tuple):
        rows, columns = index
        return rows, columns
    return index, slice(None)


Rows: TypeAlias = "np.ndarray | Joined | Unit"
Embedding: TypeAlias = "np.ndarray | Joined | torch.Tensor | str | Path"
PAIRS_AT_ONCE = 256  # pairs that are multiplied at once
VALUES_AT_ONCE = 4_000_000  # values that are read at once where no block is computed
GLANCE = 8  # every which dimension is compared first in the search for equal rows
# The length of a digest, by which two different rows of a million agree with a chance below 2^-88.
DIGEST_BYTES = 16


class Embeddings(OfVectors):
    """The matrix images @ captions.T [I, C] of two sets of embeddings.

    Products are computed in float32, or in float64 if either side is float64. Two equal embeddings
    get equal similarities in every comparison, so that duplicates tie and none is ahead by
    rounding.
    """

    def __init__(
        self, images: Embedding, captions: Embedding, double: bool = False, normalise: bool = False
    ) -> None:
        """Open and check [I, D] and [C, D]: float arrays in memory or memory-mapped, joined arrays,
        tensors or `.npy`.

        double: compute in float64 in any case. normalise: divide each vector by its length.
            InputError for other shapes or types, and for a NaN or infinity, with its row and
            dimension.
        """
        self.images = _array(images, "image embeddings", normalise)
        self.captions = _array(captions, "caption embeddings", normalise)
        dimension = self.images.shape[1]
        if self.captions.shape[1] != dimension:
            raise InputError(
                f"vectors of images have {dimension} numbers, those of captions "
                f"{self.captions.shape[1]}: give both from one model; received images "
                f"{list(self.images.shape)} and captions {list(self.captions.shape)}"
            )
        self.shape = (len(self.images), len(self.captions))
        self.dtype: np.dtype[np.floating[Any]] = np.dtype(np.float32)
        if double or 8 in (self.images.itemsize, self.captions.itemsize):
            self.dtype = np.dtype(np.float64)
        highest = _highest(self.images, "image") * _highest(self.captions, "caption") * dimension
        self._cannot_overflow = highest < float(np.finfo(self.dtype).max)

    @cached_property
    def equal(self) -> EqualRows:
        """The groups of equal embeddings, see `Similarity.equal`."""
        return EqualRows(_equal_rows(self.images), _equal_rows(self.captions))

    def block(self, images: Index, captions: Index) -> Cells:
        """Compute a block, see `Similarity.block`.

        Raises:
            InputError: If a product overflows, with its row and column.
        """
        rows = self._rows(self.images[images])
        columns = self._rows(self.captions[captions])
        with np.errstate(over="ignore", invalid="ignore"):
            product = rows @ columns.T
        if self._cannot_overflow:
            return product
        return blocks.refuse_nonfinite(product, images, captions)

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        """Compute single cells, see `Similarity.pairs`.

        They may differ from cells of a block by rounding.

        Raises:
            InputError: If a product overflows, with its row and column.
        """
        cells = np.empty(len(images), self.dtype)
        for start in range(0, len(images), PAIRS_AT_ONCE):
            part = slice(start, start + PAIRS_AT_ONCE)
            rows = self._rows(self.images[images[part]])
            columns = self._rows(self.captions[captions[part]])
            with np.errstate(over="ignore", invalid="ignore"):
                cells[part] = (rows * columns).sum(1)
        return blocks.refuse_nonfinite_pairs(cells, images, captions)

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """The blocks for matrix products, see `Similarity.grid`."""
        cells = max(1, min(block_bytes, blocks.PRODUCT_BYTES) // self.dtype.itemsize)
        return blocks.product_blocks(shape, cells)

    def _rows(self, values: np.ndarray) -> Cells:
        return np.require(values, self.dtype, ["C"])


def _array(values: Embedding, what: str, normalise: bool) -> np.ndarray:
    array: Any = values  # joined arrays are indexed like one array
    if isinstance(values, str | Path):
        array = open_npy(Path(values))
    elif not isinstance(values, Joined):
        array = to_array(values)
    blocks.check_floats(array, what, ("items", "dimension"))
    if normalise:
        return Unit(array, what)  # type: ignore[return-value]
    return array  # type: ignore[no-any-return]


def _parts(rows: int, width: int) -> Iterator[slice]:
    """Cut some rows of so many values into parts that are read at once."""
    step = max(1, VALUES_AT_ONCE // max(1, width))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def _highest(values: np.ndarray, side: str) -> float:
    highest = 0.0
    for part in _parts(*values.shape):
        rows = blocks.as_cells(values[part])
        low = float(rows.min())
        high = float(rows.max())
        if not math.isfinite(high - low):
            _refuse_nonfinite(rows, part.start, side)
        highest = max(highest, -low, high)
    return highest


def _refuse_nonfinite(rows: Cells, start: int, side: str) -> None:
    """Refuse the first value that is not finite; a difference of finite ones may be infinite."""
    for row, dimension in np.argwhere(~np.isfinite(rows))[:1].tolist():
        raise InputError(
            f"{side} embeddings: row {start + row}, dimension {dimension} is "
            f"{float(rows[row, dimension])}: it cannot be ranked"
        )


def _equal_rows(values: Rows) -> Ids:
    """Find the first row with the same values as each row, int64 [N]."""
    labels = np.arange(len(values))
    # A few dimensions show which rows may have an equal; only those are read in full.
    glance = _digests(values, labels, max(1, values.shape[1] // GLANCE))
    _, group, size = np.unique(glance, return_inverse=True, return_counts=True)
    alike = np.flatnonzero(size[group] > 1)
    exact = _digests(values, alike)
    _, first, group = np.unique(exact, return_index=True, return_inverse=True)
    labels[alike] = alike[first[group]]
    return labels


def _digests(values: Rows, rows: Ids, step: int = 1) -> npt.NDArray[np.bytes_]:
    """The digests of some rows, of every step-th of their dimensions: S16 [rows]."""
    of_rows = np.empty(len(rows), f"S{DIGEST_BYTES}")
    for part in _parts(len(rows), values.shape[1] // step):
        of_rows[part] = digests(values[blocks.as_slice(rows[part]), ::step])
    return of_rows


def digests(rows: npt.NDArray[Any]) -> npt.NDArray[np.bytes_]:
    """The BLAKE2b digest of each row's values: S16 [N]; -0.0 and 0.0 are one value."""
    working: np.dtype[np.floating[Any]] = np.dtype(np.float32)
    if blocks.working_size(rows.dtype) == 8:
        working = np.dtype(np.float64)
    exact = np.add(rows, 0.0, dtype=working, order="C")  # -0.0 becomes 0.0
    of_rows = [blake2b(row, digest_size=DIGEST_BYTES).digest() for row in exact]
    return np.array(of_rows, f"S{DIGEST_BYTES}")


class Enlarged(Embeddings):
    """The similarities of a pool's queries to its own candidates and to all distractors.

    Distractors are images and captions of other data sets that are candidates and no queries, as in
    Geigle et al., "Retrieve Fast, Rerank Smart", TACL 2022, Table 5, which shows how recalls fall
    in larger collections.

    The pool's own rows and columns come first, the distractors' after them. Only cells of the
    pool's own queries are computed: its rows in full, and its columns below them.
    """

    def __init__(self, own: Embeddings, distractors: Sequence[Embeddings]) -> None:
        dimension = own.images.shape[1]
        dtype = own.images.dtype
        for pool in distractors:
            if pool.images.shape[1] != dimension:
                raise InputError(
                    f"distractors: expected embeddings of dimension {dimension}, "
                    f"received {pool.images.shape[1]}"
                )
            if {pool.images.dtype, pool.captions.dtype} != {dtype, own.captions.dtype}:
                raise InputError(f"distractors: expected {dtype}, received {pool.images.dtype}")
        pools = [own, *distractors]
        images = Joined([pool.images for pool in pools])
        captions = Joined([pool.captions for pool in pools])
        super().__init__(images, captions)
        self.own = own.shape

    @property
    def cells_computed(self) -> int:
        """How many cells the blocks of the grid have in all."""
        images, captions = self.own
        return images * self.shape[1] + (self.shape[0] - images) * captions

    def caption_image(self, caption_image: Ids) -> Ids:
        """Extend the pool's caption map to the distractors."""
        distractors = self.shape[1] - len(caption_image)
        return np.concatenate([caption_image, np.full(distractors, -1, np.int64)])

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """Cut the pool's own rows and columns into blocks; cells between two distractors are left
        out.
        """
        if shape != self.shape:
            raise InputError(
                "a pool with distractors is measured whole: leave out --protocol and --folds"
            )
        images, captions = self.own
        yield from super().grid((images, shape[1]), block_bytes)
        if shape[0] > images:
            below = (shape[0] - images, captions)
            for rows, columns in super().grid(below, block_bytes):
                yield slice(rows.start + images, rows.stop + images), columns


BYTES_A_CELL = 8


class Others(WholeQueries):
    """The inner products of embeddings of one side [N, D] with each other; each item ranks last for
    itself.
    """

    by_image = True
    equal = None

    def __init__(self, vectors: Embedding) -> None:
        self.products = Embeddings(vectors, vectors)
        self.shape = self.products.shape
        self.last = float(np.finfo(self.products.dtype).min)

    def block(self, images: Index, captions: Index) -> Cells:
        """Compute a block of whole rows, see `Similarity.block`."""
        cells = np.array(self.products.block(images, captions))
        queries = np.arange(self.shape[0])[images]
        cells[np.arange(len(queries)), queries] = self.last
        return cells

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        """Compute single cells, see `Similarity.pairs`."""
        return np.where(images == captions, self.last, self.products.pairs(images, captions))

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """Cut a shape into blocks of whole rows."""
        captions = shape[1]
        rows = max(1, block_bytes // (BYTES_A_CELL * captions))
        return blocks.cut(shape, rows, captions)
