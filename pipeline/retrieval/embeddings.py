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
TORCH = {4: torch.float32, 8: torch.float64}
# Rows read at once where no block is computed, and dimensions compared first in the search for equal rows.
PAIRS_AT_ONCE, ROWS_AT_ONCE, GLANCE = 256, 4096, 8


class Embeddings:
    """The matrix images @ captions.T [I, C] of two sets of embeddings.

    Products are computed in float32, or in float64 if either side is float64. Two equal embeddings get equal
    similarities wherever these are compared, so that duplicates tie and none is ahead by rounding.
    """

    def __init__(self, images: Embedding, captions: Embedding, double: bool = False) -> None:
        """Open and check the embeddings.

        Args:
            images: [I, D], float16, float32 or float64: a numpy array in memory or memory-mapped, joined arrays, a
                torch tensor, or the path of a `.npy` file.
            captions: [C, D], likewise.
            double: Whether to compute in float64 in any case.

        Raises:
            InputError: For other shapes or types, for different D, and for a NaN or infinity, with its row and
                dimension.
        """
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
        """The groups of equal embeddings, see `Similarity.equal`."""
        return EqualRows(_equal_rows(self.images), _equal_rows(self.captions))

    def block(self, images: Index, captions: Index) -> Cells:
        """Compute a block, see `Similarity.block`.

        Raises:
            InputError: If a product overflows, with its row and column.
        """
        rows, columns = self._rows(self.images[images]), self._rows(self.captions[captions])
        product = np.empty((len(rows), aligned(len(columns))), self.dtype)[:, :len(columns)]
        torch.mm(rows, columns.T, out=torch.from_numpy(product))
        return product if self._cannot_overflow else refuse_nonfinite(product, images, captions)

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        """Compute single cells, see `Similarity.pairs`.

        They may differ from cells of a block by rounding.

        Raises:
            InputError: If a product overflows, with its row and column.
        """
        cells = np.empty(len(images), self.dtype)
        for start in range(0, len(images), PAIRS_AT_ONCE):
            part = slice(start, start + PAIRS_AT_ONCE)
            rows, columns = self._rows(self.images[images[part]]), self._rows(self.captions[captions[part]])
            cells[part] = (rows * columns).sum(1).numpy()
        return refuse_nonfinite_pairs(cells, images, captions)

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """Cut a shape into blocks for matrix products.

        Args:
            shape: Images and captions.
            block_bytes: The most memory that one block takes.

        Returns:
            The rows and columns of each block.
        """
        return product_blocks(shape, max(1, min(block_bytes, PRODUCT_BYTES) // self.dtype.itemsize))

    def _rows(self, values: npt.NDArray[Any]) -> torch.Tensor:
        return to_tensor(np.asarray(values)).to(TORCH[self.dtype.itemsize])


def _array(values: Embedding, what: str) -> npt.NDArray[Any]:
    array: Any = values  # joined arrays are indexed like one array
    if not isinstance(values, Joined):
        array = open_npy(Path(values)) if isinstance(values, str | Path) else to_array(values)
    check_floats(array, what, ("items", "dimension"))
    return array


def _highest(values: npt.NDArray[Any], side: str) -> float:
    """Find the largest absolute value."""
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
    """Label equal rows alike: int64 [N]."""
    labels = np.arange(len(values))
    # A few dimensions show which rows may have an equal; only those are read in full.
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
    """Sum the bits of each row, with random weights: int64 [N].

    The sums do not depend on the order of addition. Two different rows have the same sum with a chance below 2^-45.
    """
    weights = np.random.default_rng(0).integers(1 << 62, size=rows.shape[1], dtype=np.int64) | 1
    double = working_size(rows.dtype) == 8
    exact = np.add(rows, 0.0, dtype=np.float64 if double else np.float32, order="C")  # -0.0 becomes 0.0
    return exact.view(np.int64 if double else np.int32) @ weights
