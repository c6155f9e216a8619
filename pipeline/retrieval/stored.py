"""Stored similarity matrices: arrays in memory, `.npy` files by memory map, zarr arrays by chunk."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import InputError
from pipeline.retrieval.blocks import (
    CACHED_BYTES,
    Cells,
    Ids,
    Index,
    as_cells,
    check_floats,
    refuse_nonfinite,
    refuse_nonfinite_pairs,
    row_blocks,
    working_size,
)

if TYPE_CHECKING:
    import zarr
    from torch import Tensor


class Matrix:
    """A matrix in memory or memory-mapped: float16, float32 or float64 [I, C]."""

    equal = None

    def __init__(self, values: npt.NDArray[Any]) -> None:
        check_floats(values, "similarity matrix", ("images", "captions"))
        self.values = values
        self.shape = (int(values.shape[0]), int(values.shape[1]))

    def block(self, images: Index, captions: Index) -> Cells:
        both = isinstance(images, slice) or isinstance(captions, slice)
        cells = self.values[images, captions] if both else self.values[np.ix_(images, captions)]  # type: ignore[arg-type]
        return refuse_nonfinite(as_cells(cells), images, captions)

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        return refuse_nonfinite_pairs(as_cells(self.values[images, captions]), images, captions)

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        return row_blocks(shape, min(block_bytes, CACHED_BYTES) // working_size(self.values.dtype))


class ZarrMatrix:
    """A zarr array [I, C] of float16, float32 or float64, read in whole chunks.

    Raises `InputError` if chunks are missing: zarr would read them back as the fill value, and the ranks
    would be wrong in silence.
    """

    equal = None

    def __init__(self, values: zarr.Array[Any]) -> None:
        check_floats(values, "similarity matrix", ("images", "captions"))
        written, expected = _objects(values)
        if written != expected:
            raise InputError(
                f"the similarity array has {written} of its {expected} stored pieces: "
                "finish writing it, with write_empty_chunks=True"
            )
        self.values = values
        self.shape = (int(values.shape[0]), int(values.shape[1]))

    def block(self, images: Index, captions: Index) -> Cells:
        try:
            cells = np.asarray(self.values.oindex[images, captions])
        except (ValueError, RuntimeError) as error:  # a chunk that is cut short or does not unpack
            raise InputError(f"a stored piece of the similarity array is damaged ({error}); write it again") from None
        return refuse_nonfinite(as_cells(cells), images, captions)

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        cells = np.asarray(self.values.vindex[images, captions])
        return refuse_nonfinite_pairs(as_cells(cells), images, captions)

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        cells = block_bytes // working_size(self.values.dtype)
        return row_blocks(shape, cells, (self.values.chunks[0], self.values.chunks[1]))


def _objects(values: zarr.Array[Any]) -> tuple[int, int]:
    """How many shards (chunks, where there are no shards) are stored, and how many there should be."""
    stored = values.shards or values.chunks
    expected = math.prod(math.ceil(size / piece) for size, piece in zip(values.shape, stored, strict=True))
    # zarr counts the chunks of every stored shard, those beyond the array's edge too.
    return values.nchunks_initialized // (math.prod(stored) // math.prod(values.chunks)), expected


def to_array(values: npt.NDArray[Any] | Tensor) -> npt.NDArray[Any]:
    """The values as a numpy array; bfloat16, which numpy lacks, becomes float32."""
    if not hasattr(values, "detach"):
        return values
    values = values.detach().cpu()
    return (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()


def open_npy(path: Path) -> npt.NDArray[Any]:
    """A `.npy` file, memory-mapped and never unpickled. Raises `InputError` if it cannot be read."""
    try:
        # Copy on write: the file is never changed, and torch gets memory that it may write to.
        array = np.load(path, mmap_mode="c", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"cannot read {path} as a .npy file: {error}") from error
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path} holds several arrays: save the one that is meant as .npy")
    return array


def open_zarr(path: Path) -> zarr.Array[Any]:
    """A zarr array, to be read. Raises `InputError` if there is none."""
    import zarr

    if not path.exists():
        raise InputError(f"no similarity matrix at {path}")
    try:
        return zarr.open_array(path, mode="r")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"cannot read {path} as a zarr array: {error}") from error
