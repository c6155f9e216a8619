"""Similarity matrices in memory and in `.npy` files, by memory map."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pipeline.evaluation.retrieval.blocks import (
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
from pipeline.parts.errors import InputError

if TYPE_CHECKING:
    import zarr


class Matrix:
    """A similarity matrix [I, C] in memory or memory-mapped."""

    equal = None

    def __init__(self, values: npt.NDArray[Any] | zarr.Array[Any]) -> None:
        """Check the matrix."""
        check_floats(values, "similarity matrix", ("images", "captions"), integers=True)
        self.values: Any = values
        self.shape = (int(values.shape[0]), int(values.shape[1]))

    def block(self, images: Index, captions: Index) -> Cells:
        """Read a block, see `Similarity.block`."""
        return refuse_nonfinite(as_cells(self._read(images, captions)), images, captions)

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        """Read single cells, see `Similarity.pairs`."""
        return refuse_nonfinite_pairs(as_cells(self._read_pairs(images, captions)), images, captions)

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """Cut a shape into blocks of whole rows that fit a processor's cache."""
        return row_blocks(shape, min(block_bytes, CACHED_BYTES) // working_size(self.values.dtype))

    def _read(self, images: Index, captions: Index) -> npt.NDArray[Any]:
        return np.asarray(self.values[crossed(images, captions)])

    def _read_pairs(self, images: Ids, captions: Ids) -> npt.NDArray[Any]:
        return np.asarray(self.values[images, captions])


def crossed(rows: Index, columns: Index) -> Any:
    """Index each of some rows in each of some columns."""
    return (rows, columns) if isinstance(rows, slice) or isinstance(columns, slice) else np.ix_(rows, columns)


def to_array(values: object) -> npt.NDArray[Any]:
    """Convert a user's array to a plain numpy array; bfloat16, which numpy lacks, becomes float32."""
    torch: Any = sys.modules.get("torch")  # if it is not imported, `values` is no tensor
    if torch is not None and isinstance(values, torch.Tensor):
        tensor: Any = values
        if tensor.layout != torch.strided or tensor.is_quantized:
            raise InputError(f"expected a dense tensor, received layout {tensor.layout}: give its .to_dense()")
        tensor = tensor.detach().cpu()
        array: npt.NDArray[Any] = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
        return array
    if isinstance(values, np.ma.MaskedArray):
        hidden = int(np.ma.count_masked(values))
        if hidden:
            raise InputError(f"{hidden} values of the array are masked, and all are ranked: give numbers for them, "
                             "with .filled(), or leave their rows and columns out")
        return np.asarray(values.data)
    if not isinstance(values, np.ndarray):
        raise InputError(f"expected an array, received {type(values).__name__}: give a numpy array or a tensor; of a "
                         "sparse matrix its .toarray()")
    return values if type(values) in (np.ndarray, np.memmap) else np.asarray(values)


MAGIC, ARCHIVE = b"\x93NUMPY", b"PK"


def open_npy(path: Path) -> npt.NDArray[Any]:
    """Map a `.npy` file into memory; it is never unpickled and may be larger than the memory."""
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
        if start.startswith(ARCHIVE):
            raise InputError(f"{path}: holds several arrays (.npz): save the one that is meant with numpy.save")
        if start != MAGIC:
            raise InputError(f"{path}: is no .npy file: write it with numpy.save")
        if holds_objects(path):
            return _of_vse_infty(path)
        # Read-only, because a writable map that is larger than the memory is refused.
        return np.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:  # the dtype needs unpickling, or bytes are missing
        raise InputError(f"{path}: is cut short or holds no plain numbers ({error}): write it with numpy.save"
                         ) from None


def holds_objects(path: Path) -> bool:
    """Find out from its header whether a `.npy` file holds Python objects; nothing is unpickled."""
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        return bool(read(file)[2].hasobject)


def _of_vse_infty(path: Path) -> npt.NDArray[Any]:
    """Read the matrix in a file that VSE∞'s evaluation wrote.

    It holds a dict of `npts`, the number of images, and `sims` [images, captions].
    """
    from pipeline.files.restricted_pickle import load_npy

    held = load_npy(path)
    found = held[0] if isinstance(held, list) and len(held) == 1 else None
    sims = found.get("sims") if isinstance(found, dict) else None
    if not isinstance(sims, np.ndarray):
        raise InputError(f"{path}: holds Python objects, and not VSE∞'s {{'npts', 'sims'}}: write the matrix alone "
                         "with numpy.save")
    return sims
