"""What all similarity sources share: how a matrix is cut into blocks, and what a block must be.

`Matrix` is the source whose cells are in memory or in a `.npy` file, by memory map.
"""

import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from pipeline.files import npy, regular
from pipeline.parts.errors import InputError, refusing

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
TILE_WIDTH, TILE_CELLS = 8160, 64 * 8160

# The size and width of a block that is a matrix product. In a wider one the other side is packed
# less often and rows are counted faster, as long as the processor's outer cache holds it.
PRODUCT_BYTES, PRODUCT_WIDTH = 8_000_000, 4080


def row_blocks(
    shape: tuple[int, int], cells: int, chunk: tuple[int, int] = (1, 1)
) -> Iterator[tuple[slice, slice]]:
    """Cut a matrix into blocks of whole rows, or of parts of rows if one row is too long."""
    captions, (tall, wide) = shape[1], chunk
    columns = captions if tall * captions <= cells else max(wide, cells // tall // wide * wide)
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
    for top in range(0, shape[0], rows):
        for left in range(0, shape[1], columns):
            yield slice(top, min(top + rows, shape[0])), slice(left, min(left + columns, shape[1]))


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
    if integers and values.dtype.kind in "iu":
        return
    if values.dtype.kind != "f" or values.dtype.itemsize > 8:
        raise InputError(
            f"{what}: expected float16, float32 or float64{', or integers' if integers else ''}, received "
            f"{values.dtype}"
        )


def working_size(dtype: np.dtype[Any]) -> int:
    """Find the size of a cell in a block."""
    return 8 if dtype.itemsize >= (8 if dtype.kind == "f" else 4) else 4


def as_cells(values: npt.NDArray[Any]) -> Cells:
    """Convert values to float32, but float64 and long integers to float64, without rounding."""
    is_long = values.dtype.kind in "iu" and values.dtype.itemsize == 8 and values.size
    if is_long and max(-int(values.min()), int(values.max())) > 2**53:
        raise InputError(
            "the similarities hold integers beyond 2^53, whose order float64 does not keep: scale them"
        )
    return np.require(values, np.float64 if working_size(values.dtype) == 8 else np.float32, ["C"])


def as_slice(index: Ids) -> Index:
    """Convert an index to a slice if it counts up by one, because a slice is read faster."""
    if len(index) and index[-1] - index[0] == len(index) - 1 and bool((np.diff(index) == 1).all()):
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
            _refuse(
                float(block[row, column]), position(images, row), position(captions, column), name
            )
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
    fill = (
        "scores[scores == -numpy.inf] = scores[numpy.isfinite(scores)].min() - 1"
        if value < 0
        else "scores[scores == numpy.inf] = scores[numpy.isfinite(scores)].max() + 1"
    )
    which = "pairs that were not scored" if value < 0 else "pairs without a distance"
    also = "" if value < 0 else ", and where float16 was too small, save float32"
    return f"where it fills in {which}, {fill} ranks them last{also}"


def position(index: Index, place: int) -> int:
    """Find where a row or column of a block is in the whole matrix."""
    return int((index.start or 0) + place if isinstance(index, slice) else index[place])


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
        return refuse_nonfinite(as_cells(self._read(images, captions)), images, captions, self.name)

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        """Read single cells, see `Similarity.pairs`."""
        return refuse_nonfinite_pairs(
            as_cells(self._read_pairs(images, captions)), images, captions, self.name
        )

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """Cut a shape into blocks of whole rows that fit a processor's cache."""
        return row_blocks(shape, min(block_bytes, CACHED_BYTES) // working_size(self.values.dtype))

    def _read(self, images: Index, captions: Index) -> npt.NDArray[Any]:
        return np.asarray(self.values[crossed(images, captions)])

    def _read_pairs(self, images: Ids, captions: Ids) -> npt.NDArray[Any]:
        return np.asarray(self.values[images, captions])


def crossed(rows: Index, columns: Index) -> Any:
    """Index each of some rows in each of some columns."""
    return (
        (rows, columns)
        if isinstance(rows, slice) or isinstance(columns, slice)
        else np.ix_(rows, columns)
    )


def to_array(values: object) -> npt.NDArray[Any]:
    """Convert a user's array to a plain numpy array; bfloat16, which numpy lacks, becomes
    float32.
    """
    torch: Any = sys.modules.get("torch")  # if it is not imported, `values` is no tensor
    if torch is not None and isinstance(values, torch.Tensor):
        tensor: Any = values
        if tensor.layout != torch.strided or tensor.is_quantized:
            raise InputError(
                f"expected a dense tensor, received layout {tensor.layout}: give its .to_dense()"
            )
        tensor = tensor.detach().cpu()
        array: npt.NDArray[Any] = (
            tensor.float() if tensor.dtype == torch.bfloat16 else tensor
        ).numpy()
        return array
    if isinstance(values, np.ma.MaskedArray):
        hidden = int(np.ma.count_masked(values))
        if hidden:
            raise InputError(
                f"{hidden} values of the array are masked, and all are ranked: give numbers for them, "
                "with .filled(), or leave their rows and columns out"
            )
        return np.asarray(values.data)
    if not isinstance(values, np.ndarray):
        raise InputError(
            f"expected an array, received {type(values).__name__}: give a numpy array or a tensor; of a "
            "sparse matrix its .toarray()"
        )
    return values if type(values) in (np.ndarray, np.memmap) else np.asarray(values)


ARCHIVE = b"PK"


def open_npy(path: Path) -> npt.NDArray[Any]:
    """Map a `.npy` file into memory; it is never unpickled and may be larger than the memory."""
    with (
        refusing(
            ValueError,
            lambda error: (
                f"{path}: is damaged, cut short or no .npy file of numbers ({error}): "
                "write it with numpy.save"
            ),
        ),
        refusing(OSError, lambda error: f"cannot read {path}: {error.strerror or error}"),
    ):
        with regular.opened(path) as file:
            inode = os.fstat(file.fileno()).st_ino
            if file.read(len(ARCHIVE)) == ARCHIVE:
                raise InputError(
                    f"{path}: holds several arrays (.npz): save the one that is meant with numpy.save"
                )
            file.seek(0)
            if npy.read_header(file).dtype.hasobject:
                return _of_vse_infty(path)
        array: Any = npy.mapped(path)
        if isinstance(array, np.memmap):
            array.inode = inode  # type: ignore[attr-defined]  # see `compute.by_path`
        return array  # type: ignore[no-any-return]


def _of_vse_infty(path: Path) -> npt.NDArray[Any]:
    """Read the matrix `sims` [images, captions] in a file that VSE∞'s evaluation wrote."""
    from pipeline.files import restricted_pickle

    held = restricted_pickle.load(path, in_npy=True)
    found = held[0] if isinstance(held, list) and len(held) == 1 else None
    sims = found.get("sims") if isinstance(found, dict) else None
    if not isinstance(sims, np.ndarray):
        raise InputError(
            f"{path}: holds objects, and not VSE∞'s {{'npts', 'sims'}}: write the matrix with numpy.save"
        )
    return sims
