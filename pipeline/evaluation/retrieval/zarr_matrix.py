"""Similarity matrices in zarr: all stored pieces are checked before one is read, and errors name the damaged piece."""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import zarr

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
from pipeline.evaluation.retrieval.zarr_pieces import (
    Piece,
    damaged,
    file_of,
    is_plain,
    pieces,
    place_of,
    refuse_missing,
    said,
    stored_shape,
)
from pipeline.parts.errors import InputError

Read = TypeVar("Read")


class ZarrMatrix:
    """A similarity matrix [I, C] in a zarr array, read in whole chunks; uncompressed chunk files are memory-mapped."""

    equal = None

    def __init__(self, values: zarr.Array[Any]) -> None:
        """Check the array and its files.

        zarr reads a missing piece as the fill value. Ranks would then be wrong without an error, so it is refused.
        """
        check_floats(values, "similarity matrix", ("images", "captions"), integers=True)
        refuse_missing(values)
        self.values = values
        self.shape = (int(values.shape[0]), int(values.shape[1]))
        self.mapped = _Mapped(values) if is_plain(values) else None

    def block(self, images: Index, captions: Index) -> Cells:
        """Read a block, see `Similarity.block`."""
        cells = self.mapped.block(images, captions) if self.mapped else self._read(
            lambda: np.asarray(self.values.oindex[images, captions]))
        return refuse_nonfinite(as_cells(cells), images, captions)

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        """Read single cells, see `Similarity.pairs`."""
        cells = self.mapped.pairs(images, captions) if self.mapped else self._read(
            lambda: np.asarray(self.values.vindex[images, captions]))
        return refuse_nonfinite_pairs(as_cells(cells), images, captions)

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """Cut a shape into blocks of whole chunks, or into blocks within chunks if files are memory-mapped."""
        size, chunks = working_size(self.values.dtype), (self.values.chunks[0], self.values.chunks[1])
        if self.mapped:
            return _within_chunks(shape, chunks, max(1, min(block_bytes, CACHED_BYTES) // size))
        return row_blocks(shape, block_bytes // size, chunks)

    def _read(self, read: Callable[[], Read]) -> Read:
        """Call a reader of zarr."""
        try:
            return read()
        except Exception as error:  # codecs raise many kinds on bytes that they did not write
            for piece in pieces(self.values):
                area = tuple(slice(at * size, (at + 1) * size)
                             for at, size in zip(piece, stored_shape(self.values), strict=True))
                try:
                    _ = self.values[area]
                except Exception as damage:
                    raise damaged(self.values, piece, damage) from None
            raise InputError(f"{place_of(self.values)}: cannot be read ({said(error)}); write it again") from None


class _Mapped:
    """Chunks whose files hold the bytes as they are in memory; only the cells that are needed are read."""

    def __init__(self, values: zarr.Array[Any]) -> None:
        self.values, self.chunks = values, (values.chunks[0], values.chunks[1])
        self.dtype = values.dtype.newbyteorder("<")
        # A block of columns lies in all chunks of a column. Their maps are kept: a new map would read each page again.
        down = ceil(values.shape[0] / values.chunks[0])
        self._chunk = lru_cache(maxsize=down + 4)(partial(_map, values, self.dtype))

    def block(self, images: Index, captions: Index) -> npt.NDArray[Any]:
        parts = [_by_chunk(index, size, chunk)
                 for index, size, chunk in zip((images, captions), self.values.shape, self.chunks, strict=True)]
        if all(len(part) == 1 for part in parts) and all(isinstance(part[0][2], slice) for part in parts):
            (row, _, rows), (column, _, columns) = parts[0][0], parts[1][0]
            return self._chunk((row, column))[rows, columns]
        out = np.empty([sum(_length(at) for _, at, _ in part) for part in parts], self.dtype)
        for (row, top, rows), (column, left, columns) in product(*parts):
            chunk = self._chunk((row, column))
            if isinstance(rows, slice) or isinstance(columns, slice):
                cells = chunk[rows, columns]
            else:
                cells = chunk[np.ix_(rows, columns)]
            if isinstance(top, slice) or isinstance(left, slice):
                out[top, left] = cells
            else:
                out[np.ix_(top, left)] = cells
        return out

    def pairs(self, images: Ids, captions: Ids) -> npt.NDArray[Any]:
        cells = np.empty(len(images), self.dtype)
        tall, wide = self.chunks
        across = ceil(self.values.shape[1] / wide)
        piece = images // tall * across + captions // wide
        order = np.argsort(piece, kind="stable")
        for here in np.split(order, np.flatnonzero(np.diff(piece[order])) + 1):
            if len(here):
                chunk = self._chunk((int(piece[here[0]]) // across, int(piece[here[0]]) % across))
                cells[here] = chunk[images[here] % tall, captions[here] % wide]
        return cells


def _map(values: zarr.Array[Any], dtype: np.dtype[Any], piece: Piece) -> npt.NDArray[Any]:
    """Map a chunk's file, read-only."""
    try:
        return np.asarray(np.memmap(file_of(values, piece), dtype, "r", shape=values.chunks))
    except (OSError, ValueError) as error:
        raise damaged(values, piece, error) from None


def _by_chunk(index: Index, size: int, chunk: int) -> list[tuple[int, Index, Index]]:
    """Divide an index among chunks: each chunk's number, the positions in the result, and those in the chunk."""
    if isinstance(index, slice):
        first, last, _ = index.indices(size)
        return [(number, slice(max(number * chunk, first) - first, min((number + 1) * chunk, last) - first),
                 slice(max(first - number * chunk, 0), min(last - number * chunk, chunk)))
                for number in range(first // chunk, ceil(last / chunk))]
    numbers = index // chunk
    return [(int(number), np.flatnonzero(numbers == number), index[numbers == number] - number * chunk)
            for number in np.unique(numbers)]


def _length(index: Index) -> int:
    return index.stop - index.start if isinstance(index, slice) else len(index)


def _within_chunks(shape: tuple[int, int], chunks: tuple[int, int], cells: int) -> Iterator[tuple[slice, slice]]:
    """Cut a shape into blocks of at most `cells`, each within one chunk."""
    wide = min(chunks[1], shape[1], cells)
    tall = max(1, min(chunks[0], cells // wide))
    return product(_steps(shape[0], chunks[0], tall), _steps(shape[1], chunks[1], wide))


def _steps(size: int, chunk: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, first + chunk, size))
            for first in range(0, size, chunk) for start in range(first, min(first + chunk, size), step)]


def open_zarr(path: Path) -> zarr.Array[Any]:
    """Open a zarr array, read-only."""
    if not path.exists():
        raise InputError(f"no similarity matrix at {path}")
    try:
        return zarr.open_array(path, mode="r")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"cannot read {path} as a zarr array: {error}") from error
