"""Similarity matrices as sources of blocks: read piece by piece, so that a pool of any size fits in memory.

A source has rows for images and columns for captions. Here are the stored ones (an array, a `.npy` file, a
zarr array) and a selection from any source; `embeddings.py` multiplies, `fusion.py` combines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
import zarr
from torch import Tensor

from pipeline.errors import InputError

Ids: TypeAlias = npt.NDArray[np.int64]
Index: TypeAlias = slice | Ids


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

    def block(self, images: Index, captions: Index) -> Tensor:
        """These rows and columns, float32 or float64; if `equal` is None, maybe a view of the storage: do not
        write into it.
        """
        ...

    def pairs(self, images: Ids, captions: Ids) -> Tensor:
        """The n cells (images[k], captions[k])."""
        ...

    def grid(self, block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """Rows and columns of the blocks to read, each of at most `block_bytes` where the storage allows."""
        ...


class Matrix:
    """A matrix in memory or memory-mapped: float16, float32 or float64 [I, C]."""

    equal = None

    def __init__(self, values: npt.NDArray[Any]) -> None:
        check_floats(values, "similarity matrix", ("images", "captions"))
        self.values = values
        self.shape = (int(values.shape[0]), int(values.shape[1]))

    def block(self, images: Index, captions: Index) -> Tensor:
        both = isinstance(images, slice) or isinstance(captions, slice)
        cells = self.values[images, captions] if both else self.values[np.ix_(images, captions)]  # type: ignore[arg-type]
        return refuse_nonfinite(to_tensor(cells), images, captions)

    def pairs(self, images: Ids, captions: Ids) -> Tensor:
        return refuse_nonfinite_pairs(to_tensor(self.values[images, captions]), images, captions)

    def grid(self, block_bytes: int) -> Iterator[tuple[slice, slice]]:
        return row_blocks(self.shape, block_bytes // working_size(self.values.dtype))


class ZarrMatrix:
    """A zarr array [I, C] of float16, float32 or float64, read in whole chunks.

    Raises `InputError` if chunks are missing: zarr would read them back as the fill value, and the ranks
    would be wrong in silence.
    """

    equal = None

    def __init__(self, values: zarr.Array[Any]) -> None:
        check_floats(values, "similarity matrix", ("images", "captions"))
        written, expected = values.nchunks_initialized, values.nchunks
        if written != expected:
            raise InputError(
                f"the similarity array has {written} of its {expected} chunks: "
                "finish writing it, with write_empty_chunks=True"
            )
        self.values = values
        self.shape = (int(values.shape[0]), int(values.shape[1]))

    def block(self, images: Index, captions: Index) -> Tensor:
        cells = np.asarray(self.values.oindex[images, captions])
        return refuse_nonfinite(to_tensor(cells), images, captions)

    def pairs(self, images: Ids, captions: Ids) -> Tensor:
        cells = np.asarray(self.values.vindex[images, captions])
        return refuse_nonfinite_pairs(to_tensor(cells), images, captions)

    def grid(self, block_bytes: int) -> Iterator[tuple[slice, slice]]:
        cells = block_bytes // working_size(self.values.dtype)
        return row_blocks(self.shape, cells, (self.values.chunks[0], self.values.chunks[1]))


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

    def block(self, images: Index, captions: Index) -> Tensor:
        return self.source.block(as_slice(self.images[images]), as_slice(self.captions[captions]))

    def pairs(self, images: Ids, captions: Ids) -> Tensor:
        return self.source.pairs(self.images[images], self.captions[captions])

    def grid(self, block_bytes: int) -> Iterator[tuple[slice, slice]]:
        return row_blocks(self.shape, block_bytes // 4)


class PerDirection(NamedTuple):
    """Two matrices of one shape, for scores that depend on the query: `i2t` ranks captions, `t2i` ranks
    images.
    """

    i2t: Similarity
    t2i: Similarity

    @property
    def shape(self) -> tuple[int, int]:
        return self.i2t.shape


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
        source = open_npy(path) if path.suffix == ".npy" else _open_zarr(path)
    if isinstance(source, np.ndarray | Tensor):
        return Matrix(to_array(source))
    if isinstance(source, zarr.Array):
        return ZarrMatrix(source)
    if isinstance(source, Similarity):
        return source
    raise InputError(
        f"cannot read similarities from {type(source).__name__}: give an array, a .npy file or a zarr array"
    )


def to_array(values: npt.NDArray[Any] | Tensor) -> npt.NDArray[Any]:
    """The values as a numpy array; bfloat16, which numpy lacks, becomes float32."""
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        return (values.float() if values.dtype == torch.bfloat16 else values).numpy()
    return values


def open_npy(path: Path) -> npt.NDArray[Any]:
    """A `.npy` file, memory-mapped and never unpickled. Raises `InputError` if it cannot be read."""
    try:
        # Copy on write: the file is never changed, and torch gets memory that it may write to.
        array = np.load(path, mmap_mode="c", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path} as a .npy file: {error}") from error
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path} holds several arrays: save the one that is meant as .npy")
    return array


def _open_zarr(path: Path) -> zarr.Array[Any]:
    if not path.exists():
        raise InputError(f"no similarity matrix at {path}")
    try:
        return zarr.open_array(path, mode="r")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"cannot read {path} as a zarr array: {error}") from error


def row_blocks(
    shape: tuple[int, int], cells: int, chunk: tuple[int, int] = (1, 1)
) -> Iterator[tuple[slice, slice]]:
    """Blocks of whole rows, or of parts of rows where one row is too long, cut at multiples of `chunk`."""
    captions, (tall, wide) = shape[1], chunk
    columns = captions if tall * captions <= cells else max(wide, cells // tall // wide * wide)
    rows = max(tall, cells // max(1, columns) // tall * tall)
    return _cut(shape, rows, columns)


def square_blocks(shape: tuple[int, int], cells: int) -> Iterator[tuple[slice, slice]]:
    """Blocks as square as the matrix allows, all of about one size: a product then reads each side as seldom
    as it can.
    """
    images, captions = shape
    rows = min(images, max(1, math.isqrt(cells)))
    rows = math.ceil(images / math.ceil(images / rows))
    columns = max(1, min(captions, cells // rows))
    return _cut(shape, rows, math.ceil(captions / math.ceil(captions / columns)))


def _cut(shape: tuple[int, int], rows: int, columns: int) -> Iterator[tuple[slice, slice]]:
    for top in range(0, shape[0], rows):
        for left in range(0, shape[1], columns):
            yield slice(top, min(top + rows, shape[0])), slice(left, min(left + columns, shape[1]))


def check_floats(values: npt.NDArray[Any] | zarr.Array[Any], what: str, axes: tuple[str, str]) -> None:
    """Raises `InputError` unless `values` is a non-empty float16, float32 or float64 matrix."""
    if values.ndim != 2 or 0 in values.shape:
        raise InputError(f"{what}: expected shape [{axes[0]}, {axes[1]}], received {list(values.shape)}")
    if values.dtype.kind != "f" or values.dtype.itemsize > 8:
        raise InputError(f"{what}: expected float16, float32 or float64, received {values.dtype}")


def working_size(dtype: np.dtype[Any]) -> int:
    """Bytes of one cell in a block: 8 for float64, otherwise 4."""
    return max(4, dtype.itemsize)


def to_tensor(values: npt.NDArray[Any]) -> Tensor:
    """The values as float32 (float64 stays), which holds every float16 exactly; a view where nothing needs to
    change.
    """
    return torch.from_numpy(
        np.require(values, np.float64 if working_size(values.dtype) == 8 else np.float32, ["C", "W"])
    )


def as_slice(index: Ids) -> Index:
    """The index as a slice where it counts up by one, which is read faster."""
    if len(index) and index[-1] - index[0] == len(index) - 1 and bool((np.diff(index) == 1).all()):
        return slice(int(index[0]), int(index[-1]) + 1)
    return index


def refuse_nonfinite(block: Tensor, images: Index, captions: Index) -> Tensor:
    """The block itself; raises `InputError` with the row and column of its first NaN or infinity."""
    # A sum reads the block once and is finite only if every cell is; it may overflow, hence the second look.
    if not math.isfinite(block.sum().item()):
        places = torch.nonzero(~torch.isfinite(block))
        if len(places):
            row, column = places[0].tolist()
            _refuse(block[row, column].item(), position(images, row), position(captions, column))
    return block


def refuse_nonfinite_pairs(values: Tensor, images: Ids, captions: Ids) -> Tensor:
    """The values of the cells (images[k], captions[k]); raises `InputError` with the place of the first NaN
    or infinity.
    """
    for place in torch.nonzero(~torch.isfinite(values))[:1, 0].tolist():
        _refuse(values[place].item(), int(images[place]), int(captions[place]))
    return values


def _refuse(value: float, row: int, column: int) -> None:
    raise InputError(
        f"the similarity at row {row} (image), column {column} (caption) is {value}: it cannot be ranked"
    )


def position(index: Index, place: int) -> int:
    """The place in the whole matrix of row or column `place` of a block."""
    return int((index.start or 0) + place if isinstance(index, slice) else index[place])
