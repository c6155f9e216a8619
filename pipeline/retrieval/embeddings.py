"""Similarities as inner products of two sets of embeddings, multiplied in blocks and never kept whole."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pipeline.errors import InputError
from pipeline.retrieval.similarity import (
    EqualRows,
    Ids,
    Index,
    check_floats,
    open_npy,
    refuse_nonfinite,
    refuse_nonfinite_pairs,
    square_blocks,
    to_array,
    to_tensor,
    working_size,
)

Embedding: TypeAlias = npt.NDArray[Any] | Tensor | str | Path
ROWS_AT_ONCE = 4096


class Embeddings:
    """The matrix images @ captions.T of embeddings [I, D] and [C, D], float16, float32 or float64, in memory
    or memory-mapped.

    Both may also be torch tensors, or paths of `.npy` files. Products are computed in float32 (in float64 if
    either side is). Two equal rows give equal similarities wherever these are compared, so that duplicates
    tie instead of winning by rounding. Raises `InputError` for other shapes or types, for unlike D, and for a
    NaN or infinity, with its row and dimension.
    """

    def __init__(self, images: Embedding, captions: Embedding) -> None:
        self.images = _array(images, "image embeddings")
        self.captions = _array(captions, "caption embeddings")
        if self.images.shape[1] != self.captions.shape[1]:
            raise InputError(
                f"embeddings: expected one dimension for both, received images {list(self.images.shape)} and "
                f"captions {list(self.captions.shape)}"
            )
        self.shape = (len(self.images), len(self.captions))
        self.dtype = (
            torch.float64 if max(self.images.itemsize, self.captions.itemsize) == 8 else torch.float32
        )

    @cached_property
    def equal(self) -> EqualRows:
        return EqualRows(
            _equal_rows(self.images, "image embeddings"),
            _equal_rows(self.captions, "caption embeddings"),
        )

    def block(self, images: Index, captions: Index) -> Tensor:
        product = self._rows(self.images[images]) @ self._rows(self.captions[captions]).T
        return refuse_nonfinite(product, images, captions)

    def pairs(self, images: Ids, captions: Ids) -> Tensor:
        cells = torch.empty(len(images), dtype=self.dtype)
        for start in range(0, len(images), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            rows, columns = self._rows(self.images[images[part]]), self._rows(self.captions[captions[part]])
            cells[part] = (rows * columns).sum(1)
        return refuse_nonfinite_pairs(cells, images, captions)

    def grid(self, block_bytes: int) -> Iterator[tuple[slice, slice]]:
        return square_blocks(self.shape, max(1, block_bytes // self.dtype.itemsize))

    def _rows(self, values: npt.NDArray[Any]) -> Tensor:
        return to_tensor(values).to(self.dtype)


def _array(values: Embedding, what: str) -> npt.NDArray[Any]:
    array = open_npy(Path(values)) if isinstance(values, str | Path) else to_array(values)
    check_floats(array, what, ("items", "dimension"))
    return array


def _equal_rows(values: npt.NDArray[Any], what: str) -> Ids:
    """Labels [N] that are equal for equal rows: the position of the first such row. Refuses NaN and
    infinities on the way.
    """
    # Equal bits give equal integer sums, whatever the order; the sums are checked below wherever two of them
    # agree.
    weights = np.random.default_rng(0).integers(1 << 62, size=values.shape[1], dtype=np.int64) | 1
    sums = np.empty(len(values), np.int64)
    for start in range(0, len(values), ROWS_AT_ONCE):
        rows = _bits(values[start : start + ROWS_AT_ONCE], what, start)
        sums[start : start + ROWS_AT_ONCE] = rows @ weights
    _, first, label = np.unique(sums, return_index=True, return_inverse=True)
    labels = first[label]
    repeated = np.flatnonzero(labels != np.arange(len(values)))
    for start in range(0, len(repeated), ROWS_AT_ONCE):
        part = repeated[start : start + ROWS_AT_ONCE]
        differs = (values[part] != values[labels[part]]).any(1)
        labels[part[differs]] = part[differs]
    return labels.astype(np.int64)


def _bits(rows: npt.NDArray[Any], what: str, start: int) -> npt.NDArray[Any]:
    if not np.isfinite(rows).all():
        row, dimension = np.argwhere(~np.isfinite(rows))[0]
        raise InputError(
            f"{what}: row {start + row}, dimension {dimension} is {rows[row, dimension]}: it cannot be ranked"
        )
    exact = np.add(
        rows, 0.0, dtype=np.float64 if working_size(rows.dtype) == 8 else np.float32
    )  # -0.0 becomes 0.0
    return exact.view(np.int64 if exact.itemsize == 8 else np.int32)
