"""What all similarity sources share: how a matrix is cut into blocks, and what a block must be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pipeline.errors import InputError

if TYPE_CHECKING:
    import zarr

Ids: TypeAlias = npt.NDArray[np.int64]
Cells: TypeAlias = npt.NDArray[Any]
"""Similarities, float32 or float64."""
Index: TypeAlias = slice | Ids

# A block of this size is still in a processor's cache when it has been made and is then counted.
CACHED_BYTES = 4_000_000

# What is compared at a time: at most TILE_WIDTH columns of TILE_CELLS cells. The longer its rows, the faster are
# numpy's comparisons, and the taller, the fewer they are; 2 MB of float32 is still close to the processor. The
# width is a multiple of 8 * 255, see `counting.py`.
TILE_WIDTH, TILE_CELLS = 8160, 64 * 8160

# A block that is a matrix product: the wider, the less often its other side is packed and the faster its rows are
# counted, up to a size that the processor's outer cache holds. Where rows of a product do not start at a multiple of
# 32 bytes, MKL takes half as long again.
PRODUCT_BYTES = 8_000_000
PRODUCT_WIDTH, ALIGNED = 4080, 8


def row_blocks(shape: tuple[int, int], cells: int, chunk: tuple[int, int] = (1, 1)) -> Iterator[tuple[slice, slice]]:
    """Cut a matrix into blocks of whole rows, or of parts of rows if one row is too long.

    Args:
        shape: Images and captions.
        cells: The most cells of one block, unless a single chunk has more.
        chunk: Rows and columns of a chunk of the storage; blocks are cut at multiples of it.

    Returns:
        The rows and columns of each block.
    """
    captions, (tall, wide) = shape[1], chunk
    columns = captions if tall * captions <= cells else max(wide, cells // tall // wide * wide)
    rows = max(tall, cells // max(1, columns) // tall * tall)
    return cut(shape, rows, columns)


def product_blocks(shape: tuple[int, int], cells: int) -> Iterator[tuple[slice, slice]]:
    """Cut a matrix into blocks for matrix products, all of about one size.

    Args:
        shape: Images and captions.
        cells: About the most cells of one block.

    Returns:
        The rows and columns of each block.
    """
    images, captions = shape
    columns = aligned(_even(captions, min(max(1, cells // ALIGNED * ALIGNED), PRODUCT_WIDTH)))
    return cut(shape, _even(images, max(1, cells // columns)), columns)


def aligned(columns: int) -> int:
    """Round a width up so that each row starts at an aligned address.

    Args:
        columns: The width.

    Returns:
        The next multiple of `ALIGNED`.
    """
    return math.ceil(columns / ALIGNED) * ALIGNED


def _even(length: int, most: int) -> int:
    """The size of the fewest parts of at most `most` that `length` can be cut into, all of about one size."""
    return math.ceil(length / math.ceil(length / most))


def cut(shape: tuple[int, int], rows: int, columns: int) -> Iterator[tuple[slice, slice]]:
    """Cut a matrix into blocks of a fixed size; those at the right and lower edges may be smaller.

    Args:
        shape: Images and captions.
        rows: Rows of a block.
        columns: Columns of a block.

    Yields:
        The rows and columns of each block, from left to right and then downwards.
    """
    for top in range(0, shape[0], rows):
        for left in range(0, shape[1], columns):
            yield slice(top, min(top + rows, shape[0])), slice(left, min(left + columns, shape[1]))


def check_floats(values: npt.NDArray[Any] | zarr.Array[Any], what: str, axes: tuple[str, str],
                 integers: bool = False) -> None:
    """Check a matrix's shape and type.

    Args:
        values: Expected to be a non-empty matrix of float16, float32 or float64.
        what: The matrix's name in the message.
        axes: Its rows and columns, for the message.
        integers: Whether integers are accepted too.

    Raises:
        InputError: For another shape or type.
    """
    if values.ndim != 2 or 0 in values.shape:
        raise InputError(f"{what}: expected shape [{axes[0]}, {axes[1]}], received {list(values.shape)}")
    if integers and values.dtype.kind in "iu":
        return
    if values.dtype.kind != "f" or values.dtype.itemsize > 8:
        raise InputError(f"{what}: expected float16, float32 or float64{', or integers' if integers else ''}, received "
                         f"{values.dtype}")


def working_size(dtype: np.dtype[Any]) -> int:
    """Find the size of a cell in a block.

    Args:
        dtype: The stored type.

    Returns:
        Bytes: 8 for float64 and for integers of more than 16 bits, otherwise 4.
    """
    return 8 if dtype.itemsize >= (8 if dtype.kind == "f" else 4) else 4


def as_cells(values: npt.NDArray[Any]) -> Cells:
    """Convert values to float32, or float64 and long integers to float64, without rounding.

    Args:
        values: Floats or integers of any shape.

    Returns:
        The same values; a view if nothing changes.

    Raises:
        InputError: For an integer beyond 2^53, which float64 cannot represent exactly.
    """
    is_long = values.dtype.kind in "iu" and values.dtype.itemsize == 8 and values.size
    if is_long and max(-int(values.min()), int(values.max())) > 2**53:
        raise InputError("the similarities hold integers beyond 2^53, whose order float64 does not keep: scale them")
    return np.require(values, np.float64 if working_size(values.dtype) == 8 else np.float32, ["C"])


def as_slice(index: Ids) -> Index:
    """Convert an index to a slice if it counts up by one, because a slice is read faster.

    Args:
        index: Int64 [n].

    Returns:
        The slice, or the index itself.
    """
    if len(index) and index[-1] - index[0] == len(index) - 1 and bool((np.diff(index) == 1).all()):
        return slice(int(index[0]), int(index[-1]) + 1)
    return index


def refuse_nonfinite(block: Cells, images: Index, captions: Index) -> Cells:
    """Check that all values of a block are finite.

    Args:
        block: Float32 or float64 [rows, columns].
        images: Its rows in the whole matrix.
        captions: Its columns in the whole matrix.

    Returns:
        The block itself.

    Raises:
        InputError: With the row and column of the first NaN or infinity.
    """
    # A sum reads the block once and is finite only if every cell is; it may overflow, hence the second look.
    with np.errstate(over="ignore", invalid="ignore"):
        total = block.sum()
    if not math.isfinite(total):
        for row, column in np.argwhere(~np.isfinite(block))[:1].tolist():
            _refuse(float(block[row, column]), position(images, row), position(captions, column))
    return block


def refuse_nonfinite_pairs(values: Cells, images: Ids, captions: Ids) -> Cells:
    """Check that the values of single cells are finite.

    Args:
        values: Float32 or float64 [n].
        images: Int64 [n], their rows.
        captions: Int64 [n], their columns.

    Returns:
        The values themselves.

    Raises:
        InputError: With the row and column of the first NaN or infinity.
    """
    for place in np.flatnonzero(~np.isfinite(values))[:1].tolist():
        _refuse(float(values[place]), int(images[place]), int(captions[place]))
    return values


def _refuse(value: float, row: int, column: int) -> None:
    raise InputError(f"the similarity at row {row} (image), column {column} (caption) is {value}: it cannot be ranked")


def position(index: Index, place: int) -> int:
    """Find where a row or column of a block lies in the whole matrix.

    Args:
        index: The block's rows or columns.
        place: The position within the block.

    Returns:
        The position in the matrix.
    """
    return int((index.start or 0) + place if isinstance(index, slice) else index[place])
