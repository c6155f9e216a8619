"""What all similarity sources share: how a matrix is cut into blocks, and what a block must be.

`Matrix` is the source whose cells are in memory or in a `.npy` file, by memory map.
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from pipeline.foundation.parts.errors import InputError

if TYPE_CHECKING:
    import zarr

Ids: TypeAlias = npt.NDArray[np.int64]
# Similarities, float32 or float64.
Cells: TypeAlias = npt.NDArray[Any]
Floats: TypeAlias = npt.NDArray[np.float64]
Singles: TypeAlias = npt.NDArray[np.float32]
Marks: TypeAlias = npt.NDArray[np.bool_]
Index: TypeAlias = slice | Ids
Direction: TypeAlias = Literal["i2t", "t2i"]

# A block of this size stays in the processor's cache from when it is computed until it is counted.
CACHED_BYTES = 4_000_000

# A tile is what is compared at a time: at most TILE_WIDTH columns and TILE_CELLS cells. Longer rows
# make numpy's comparisons faster, more rows make them fewer; 2 MB of float32 stays in the
# processor's cache. The width is a multiple of 8 * 255, see `ranking.py`.
TILE_WIDTH = 8160
TILE_CELLS = 64 * 8160

# The size and width of a block that is a matrix product. In a wider one the other side is packed
# less often and rows are counted faster, as long as the processor's outer cache holds it.
PRODUCT_BYTES = 8_000_000
PRODUCT_WIDTH = 4080


def row_blocks(
    shape: tuple[int, int], cells: int, chunk: tuple[int, int] = (1, 1)
) -> Iterator[tuple[slice, slice]]:
    """Cut a matrix into blocks of whole rows, or of parts of rows if one row is too long."""
    captions = shape[1]
    tall, wide = chunk
    columns = captions
    if tall * captions > cells:
        columns = max(wide, cells // tall // wide * wide)
    rows = max(tall, cells // max(1, columns) // tall * tall)
    return cut(shape, rows, columns)


def product_blocks(shape: tuple[int, int], cells: int) -> Iterator[tuple[slice, slice]]:
    """Cut a matrix into blocks for matrix products, all of about one size."""
    images, captions = shape
    columns = _even(captions, min(max(1, cells), PRODUCT_WIDTH))
    return cut(shape, _even(images, max(1, cells // columns)), columns)


def _even(length: int, most: int) -> int:
    """The size of the fewest parts of at most `most` that `length` can be cut into, all of about
    one size.
    """
    return math.ceil(length / math.ceil(length / most))


def cut(shape: tuple[int, int], rows: int, columns: int) -> Iterator[tuple[slice, slice]]:
    """Cut a matrix into blocks of a fixed size; those at the right and lower edges may be
    smaller.
    """
    height, width = shape
    for top in range(0, height, rows):
        of_rows = slice(top, min(top + rows, height))
        for left in range(0, width, columns):
            yield of_rows, slice(left, min(left + columns, width))


def check_floats(
    values: "npt.NDArray[Any] | zarr.Array[Any]",
    what: str,
    axes: tuple[str, str],
    integers: bool = False,
) -> None:
    """Check a matrix's shape and type."""
    if values.ndim != 2 or 0 in values.shape:
        raise InputError(
            f"{what}: expected shape [{axes[0]}, {axes[1]}], received {list(values.shape)}"
        )
    dtype = values.dtype
    if integers and dtype.kind in "iu":
        return
    if dtype.kind != "f" or dtype.itemsize > 8:
        expected = "float16, float32 or float64"
        if integers:
            expected += ", or integers"
        raise InputError(f"{what}: expected {expected}, received {dtype}")


def working_size(dtype: np.dtype[Any]) -> int:
    """Find the size of a cell in a block."""
    least = 4
    if dtype.kind == "f":
        least = 8
    if dtype.itemsize >= least:
        return 8
    return 4


def as_cells(values: npt.NDArray[Any]) -> Cells:
    """Convert values to float32, but float64 and long integers to float64, without rounding."""
    is_long = values.dtype.kind in "iu" and values.dtype.itemsize == 8
    if is_long and values.size:
        largest = max(-int(values.min()), int(values.max()))
        if largest > 2**53:
            raise InputError(
                "the similarities hold integers beyond 2^53, whose order float64 does not keep: scale them"
            )
    if working_size(values.dtype) == 8:
        return np.require(values, np.float64, ["C"])
    return np.require(values, np.float32, ["C"])


def as_slice(index: Ids) -> Index:
    """Convert an index to a slice if it counts up by one, because a slice is read faster."""
    if not len(index) or index[-1] - index[0] != len(index) - 1:
        return index
    if (np.diff(index) == 1).all():
        return slice(int(index[0]), int(index[-1]) + 1)
    return index


def refuse_nonfinite(block: Cells, images: Index, captions: Index, name: str = "") -> Cells:
    """Check that all values of a block are finite. name: what they are of, for the message."""
    # A sum reads the block once and is finite only if every cell is. It may overflow, so cells are
    # then looked at.
    with np.errstate(over="ignore", invalid="ignore"):
        total = block.sum()
    if not math.isfinite(total):
        for row, column in np.argwhere(~np.isfinite(block))[:1].tolist():
            value = float(block[row, column])
            _refuse(value, position(images, row), position(captions, column), name)
    return block


def refuse_nonfinite_pairs(values: Cells, images: Ids, captions: Ids, name: str = "") -> Cells:
    """Check that the values of single cells are finite."""
    for place in np.flatnonzero(~np.isfinite(values))[:1].tolist():
        _refuse(float(values[place]), int(images[place]), int(captions[place]), name)
    return values


def _refuse(value: float, row: int, column: int, name: str) -> None:
    of = f"{name}: " if name else ""
    raise InputError(
        f"{of}the similarity at row {row} (image), column {column} (caption) is {value}: it cannot be "
        f"ranked; {_remedy(value)}"
    )


def _remedy(value: float) -> str:
    """What helps against a value that is not finite."""
    if math.isnan(value):
        return "a vector of zeros divided by its length gives NaN: mend its row, or leave it out"
    if value < 0:
        return (
            "where it fills in pairs that were not scored, "
            "scores[scores == -numpy.inf] = scores[numpy.isfinite(scores)].min() - 1 "
            "ranks them last"
        )
    return (
        "where it fills in pairs without a distance, "
        "scores[scores == numpy.inf] = scores[numpy.isfinite(scores)].max() + 1 "
        "ranks them last, and where float16 was too small, save float32"
    )


def position(index: Index, place: int) -> int:
    """Find where a row or column of a block is in the whole matrix."""
    if isinstance(index, slice):
        return int((index.start or 0) + place)
    return int(index[place])


class Matrix:
    """A similarity matrix [I, C] in memory or memory-mapped."""

    equal = None

    def __init__(self, values: "npt.NDArray[Any] | zarr.Array[Any]", name: str = "") -> None:
        """Check the matrix. name: what messages call it, such as its file."""
        check_floats(values, name or "similarity matrix", ("images", "captions"), integers=True)
        self.values: Any = values
        self.name = name
        self.shape = (int(values.shape[0]), int(values.shape[1]))

    def block(self, images: Index, captions: Index) -> Cells:
        """Read a block, see `Similarity.block`."""
        cells = as_cells(self._read(images, captions))
        return refuse_nonfinite(cells, images, captions, self.name)

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        """Read single cells, see `Similarity.pairs`."""
        cells = as_cells(self._read_pairs(images, captions))
        return refuse_nonfinite_pairs(cells, images, captions, self.name)

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """Cut a shape into blocks of whole rows that fit a processor's cache."""
        cells = min(block_bytes, CACHED_BYTES) // working_size(self.values.dtype)
        return row_blocks(shape, cells)

    def _read(self, images: Index, captions: Index) -> npt.NDArray[Any]:
        return np.asarray(self.values[crossed(images, captions)])

    def _read_pairs(self, images: Ids, captions: Ids) -> npt.NDArray[Any]:
        return np.asarray(self.values[images, captions])


def crossed(rows: Index, columns: Index) -> Any:
    """Index each of some rows in each of some columns."""
    if isinstance(rows, slice) or isinstance(columns, slice):
        return rows, columns
    return np.ix_(rows, columns)
