"""Similarities as inner products of two sets of embeddings, multiplied in blocks and never kept whole."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from pipeline.errors import InputError
from pipeline.retrieval.blocks import (
    PRODUCT_BYTES,
    Cells,
    Ids,
    Index,
    aligned,
    as_cells,
    check_floats,
    product_blocks,
    refuse_nonfinite,
    refuse_nonfinite_pairs,
    working_size,
)
from pipeline.retrieval.joined import Joined
from pipeline.retrieval.similarity import EqualRows
from pipeline.retrieval.stored import open_npy, to_array
from pipeline.retrieval.tensors import to_tensor

Embedding: TypeAlias = npt.NDArray[Any] | Joined | torch.Tensor | str | Path
# Rows read at once where blocks are not needed, and dimensions compared first in the search for equal rows.
TORCH = {4: torch.float32, 8: torch.float64}
PAIRS_AT_ONCE, ROWS_AT_ONCE, GLANCE = 256, 4096, 8


class Embeddings:
    """The matrix images @ captions.T of embeddings [I, D] and [C, D], float16, float32 or float64, in memory
    or memory-mapped.

    Both may also be torch tensors, or paths of `.npy` files. Products are computed in float32 (in float64 if
    either side is, or if `double`). Two equal rows give equal similarities wherever these are compared, so
    that duplicates tie instead of winning by rounding. Raises `InputError` for other shapes or types, for
    unlike D, and for a NaN or infinity, with its row and dimension.
    """

    def __init__(self, images: Embedding, captions: Embedding, double: bool = False) -> None:
        self.images = _array(images, "image embeddings")
        self.captions = _array(captions, "caption embeddings")
        if self.images.shape[1] != self.captions.shape[1]:
            raise InputError(
                f"embeddings: expected one dimension for both, received images {list(self.images.shape)} and "
                f"captions {list(self.captions.shape)}"
            )
        self.shape = (len(self.images), len(self.captions))
        double = double or 8 in (self.images.itemsize, self.captions.itemsize)
        self.dtype: np.dtype[np.floating[Any]] = np.dtype(np.float64 if double else np.float32)
        highest = _highest(self.images, "image") * _highest(self.captions, "caption") * self.images.shape[1]
        self._cannot_overflow = highest < float(np.finfo(np.float64 if double else np.float32).max)

    @cached_property
    def equal(self) -> EqualRows:
        return EqualRows(_equal_rows(self.images), _equal_rows(self.captions))

    def block(self, images: Index, captions: Index) -> Cells:
        rows, columns = self._rows(self.images[images]), self._rows(self.captions[captions])
        product = np.empty((len(rows), aligned(len(columns))), self.dtype)[:, :len(columns)]
        torch.mm(rows, columns.T, out=torch.from_numpy(product))
        return product if self._cannot_overflow else refuse_nonfinite(product, images, captions)

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        cells = np.empty(len(images), self.dtype)
        for start in range(0, len(images), PAIRS_AT_ONCE):
            part = slice(start, start + PAIRS_AT_ONCE)
            rows, columns = self._rows(self.images[images[part]]), self._rows(self.captions[captions[part]])
            cells[part] = (rows * columns).sum(1).numpy()
        return refuse_nonfinite_pairs(cells, images, captions)

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        return product_blocks(shape, max(1, min(block_bytes, PRODUCT_BYTES) // self.dtype.itemsize))

    def _rows(self, values: npt.NDArray[Any]) -> torch.Tensor:
        return to_tensor(np.asarray(values)).to(TORCH[self.dtype.itemsize])


def _array(values: Embedding, what: str) -> npt.NDArray[Any]:
    array: Any = values  # joined arrays are read as one array is
    if not isinstance(values, Joined):
        array = open_npy(Path(values)) if isinstance(values, str | Path) else to_array(values)
    check_floats(array, what, ("items", "dimension"))
    return array


def _highest(values: npt.NDArray[Any], side: str) -> float:
    """The largest absolute value. Raises `InputError` with the row and dimension of the first NaN or
    infinity.
    """
    highest = 0.0
    for start in range(0, len(values), ROWS_AT_ONCE):
        rows = as_cells(values[start : start + ROWS_AT_ONCE])
        low, high = float(rows.min()), float(rows.max())
        if not math.isfinite(high - low):
            for row, dimension in np.argwhere(~np.isfinite(rows))[:1].tolist():
                raise InputError(
                    f"{side} embeddings: row {start + row}, dimension {dimension} is "
                    f"{float(rows[row, dimension])}: it cannot be ranked"
                )
        highest = max(highest, -low, high)
    return highest


def _equal_rows(values: npt.NDArray[Any]) -> Ids:
    """Labels int64 [N], the same for equal rows."""
    labels = np.arange(len(values))
    # A glance at a few dimensions finds the rows that may have an equal; only those are read whole.
    glance = values[:, :: max(1, values.shape[1] // GLANCE)]
    label, count = np.unique(_checksums(glance), return_inverse=True, return_counts=True)[1:]
    alike = np.flatnonzero(count[label] > 1)
    sums = np.empty(len(alike), np.int64)
    for start in range(0, len(alike), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        sums[part] = _checksums(values[alike[part]])
    first, label = np.unique(sums, return_index=True, return_inverse=True)[1:]
    labels[alike] = alike[first[label]]
    return labels


def _checksums(rows: npt.NDArray[Any]) -> Ids:
    """64-bit sums [N] of the rows' bits, exact whatever the order of adding; two rows that differ agree with
    a chance below 2 ** -45.
    """
    weights = np.random.default_rng(0).integers(1 << 62, size=rows.shape[1], dtype=np.int64) | 1
    double = working_size(rows.dtype) == 8
    exact = np.add(rows, 0.0, dtype=np.float64 if double else np.float32, order="C")  # -0.0 becomes 0.0
    return exact.view(np.int64 if double else np.int32) @ weights
