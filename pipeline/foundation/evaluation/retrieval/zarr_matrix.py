"""Similarity matrices in zarr: all stored pieces are checked before one is read, and errors name
the damaged piece.

A piece is a shard or, without shards, a chunk.
"""

import os
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import product
from math import ceil, prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import zarr
from zarr.codecs import ShardingCodec
from zarr.core.metadata import ArrayV3Metadata
from zarr.storage import LocalStore

from pipeline.foundation.compute import by_path
from pipeline.foundation.evaluation.retrieval.blocks import (
    CACHED_BYTES,
    Ids,
    Index,
    Matrix,
    crossed,
    row_blocks,
    working_size,
)
from pipeline.foundation.files.zarr_arrays import checked, is_plain, open_array
from pipeline.foundation.parts.errors import InputError, first_line, short_of_memory

Read = TypeVar("Read")
Piece = tuple[int, ...]

# Offset and length, in a shard's index, of a chunk that the shard does not hold (zarr 3,
# sharding_indexed).
MISSING = np.uint64(2**64 - 1)
# Bytes that a compressed piece may have beyond twice its shape's.
BEYOND = 1 << 20


class ZarrMatrix(Matrix):
    """A similarity matrix [I, C] in a zarr array, read in whole chunks; uncompressed chunk files
    are memory-mapped.
    """

    def __init__(self, values: zarr.Array[Any], name: str = "") -> None:
        """Check the array and its files.

        zarr reads a missing piece as the fill value. Ranks would then be wrong without an error, so
        it is refused.
        """
        values = checked(values, place_of(values))
        super().__init__(values, name or place_of(values))
        self.written = by_path.written_at(place_of(values))
        refuse_missing(values)
        self.mapped = _Mapped(values) if is_plain(values) else None

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """Cut a shape into blocks of whole chunks, or into blocks within chunks if files are
        memory-mapped.
        """
        size = working_size(self.values.dtype)
        chunks = (self.values.chunks[0], self.values.chunks[1])
        if self.mapped:
            cells = max(1, min(block_bytes, CACHED_BYTES) // size)
            return _within_chunks(shape, chunks, cells)
        return row_blocks(shape, block_bytes // size, chunks)

    def _read(self, images: Index, captions: Index) -> np.ndarray:
        if self.mapped:
            return self._as_opened(partial(self.mapped.block, images, captions))
        read = partial(self.values.get_orthogonal_selection, (images, captions))
        return self._as_opened(partial(self._decoded, read))

    def _read_pairs(self, images: Ids, captions: Ids) -> np.ndarray:
        if self.mapped:
            return self._as_opened(partial(self.mapped.pairs, images, captions))
        read = partial(self.values.get_coordinate_selection, (images, captions))
        return self._as_opened(partial(self._decoded, read))

    def _as_opened(self, read: Callable[[], Read]) -> Read:
        """Read from the array that was opened, and refuse one that has replaced it since."""
        try:
            return read()
        finally:  # an array that was replaced is refused as replaced, not as damaged
            if isinstance(self.values.store, LocalStore):
                by_path.refuse_replaced(Path(place_of(self.values)), self.written)

    def _decoded(self, read: Callable[[], Any]) -> np.ndarray:
        """Call a reader of zarr."""
        try:
            return np.asarray(read())
        except Exception as error:  # codecs raise many kinds on bytes that they did not write
            if short_of_memory(error):
                raise
            self._refuse_damaged_pieces()
            raise InputError(
                f"{place_of(self.values)}: cannot be read ({first_line(error)}); write it again"
            ) from None

    def _refuse_damaged_pieces(self) -> None:
        """Read piece by piece, and refuse the first that cannot be read."""
        shape = stored_shape(self.values)
        for piece in pieces(self.values):
            row, column = piece
            height, width = shape
            rows = slice(row * height, (row + 1) * height)
            columns = slice(column * width, (column + 1) * width)
            try:
                _ = self.values[rows, columns]
            except Exception as damage:
                raise damaged(self.values, piece, damage) from None


class _Mapped:
    """Chunks whose files hold the bytes as they are in memory; only the cells that are needed are
    read.
    """

    def __init__(self, values: zarr.Array[Any]) -> None:
        self.values = values
        self.chunks = (values.chunks[0], values.chunks[1])
        self.dtype = values.dtype.newbyteorder("<")
        # A block of columns lies in all chunks of a column. Their maps are kept: a new map would
        # read each page again.
        down = ceil(values.shape[0] / values.chunks[0])
        self._chunk = lru_cache(maxsize=down + 4)(partial(_map, values, self.dtype))

    def __reduce__(self) -> tuple[Any, ...]:
        return _Mapped, (self.values,)

    def block(self, images: Index, captions: Index) -> np.ndarray:
        down = _by_chunk(images, self.values.shape[0], self.chunks[0])
        across = _by_chunk(captions, self.values.shape[1], self.chunks[1])
        if len(down) == 1 and len(across) == 1:
            row, _, rows = down[0]
            column, _, columns = across[0]
            if isinstance(rows, slice) and isinstance(columns, slice):
                return self._chunk((row, column))[rows, columns]
        height = sum(_length(top) for _, top, _ in down)
        width = sum(_length(left) for _, left, _ in across)
        out = np.empty((height, width), self.dtype)
        for (row, top, rows), (column, left, columns) in product(down, across):
            out[crossed(top, left)] = self._chunk((row, column))[crossed(rows, columns)]
        return out

    def pairs(self, images: Ids, captions: Ids) -> np.ndarray:
        cells = np.empty(len(images), self.dtype)
        tall, wide = self.chunks
        across = ceil(self.values.shape[1] / wide)
        piece = images // tall * across + captions // wide
        order = np.argsort(piece, kind="stable")
        borders = np.flatnonzero(np.diff(piece[order])) + 1
        for of_chunk in np.split(order, borders):
            if len(of_chunk):
                chunk = self._chunk(divmod(int(piece[of_chunk[0]]), across))
                cells[of_chunk] = chunk[images[of_chunk] % tall, captions[of_chunk] % wide]
        return cells


def _map(values: zarr.Array[Any], dtype: np.dtype[Any], piece: Piece) -> np.ndarray:
    try:
        mapped = np.memmap(file_of(values, piece), dtype, "r", shape=values.chunks)
    except (OSError, ValueError) as error:
        raise damaged(values, piece, error) from None
    return np.asarray(mapped)


def _by_chunk(index: Index, size: int, chunk: int) -> list[tuple[int, Index, Index]]:
    """Divide an index among chunks: each chunk's number, the positions in the result, and those in
    the chunk.
    """
    parts: list[tuple[int, Index, Index]] = []
    if isinstance(index, slice):
        first, last, _ = index.indices(size)
        for number in range(first // chunk, ceil(last / chunk)):
            begin = number * chunk
            start = max(begin, first)
            stop = min(begin + chunk, last)
            in_result = slice(start - first, stop - first)
            in_chunk = slice(start - begin, stop - begin)
            parts.append((number, in_result, in_chunk))
        return parts
    numbers = index // chunk
    for number in np.unique(numbers).tolist():
        inside = np.flatnonzero(numbers == number)
        parts.append((number, inside, index[inside] - number * chunk))
    return parts


def _length(index: Index) -> int:
    if isinstance(index, slice):
        return int(index.stop - index.start)
    return len(index)


def _within_chunks(
    shape: tuple[int, int], chunks: tuple[int, int], cells: int
) -> Iterator[tuple[slice, slice]]:
    """Cut a shape into blocks of at most `cells`, each within one chunk."""
    wide = min(chunks[1], shape[1], cells)
    tall = max(1, min(chunks[0], cells // wide))
    rows = _steps(shape[0], chunks[0], tall)
    columns = _steps(shape[1], chunks[1], wide)
    return product(rows, columns)


def _steps(size: int, chunk: int, step: int) -> list[slice]:
    steps = []
    for first in range(0, size, chunk):
        last = min(first + chunk, size)
        for start in range(first, last, step):
            steps.append(slice(start, min(start + step, last)))
    return steps


def open_zarr(path: Path) -> zarr.Array[Any]:
    """Open a zarr array, read-only."""
    return open_array(path, "similarity matrix")


def refuse_missing(values: zarr.Array[Any], what: str = "similarity array") -> None:
    """Refuse an array with missing pieces, which zarr would read as the fill value."""
    count = prod(_pieces_across(values))
    if not isinstance(values.store, LocalStore):
        # zarr counts the chunks of every stored shard, those beyond the array's edge too.
        chunks_of_piece = prod(stored_shape(values)) // prod(values.chunks)
        stored = values.nchunks_initialized // chunks_of_piece
        if stored != count:
            raise InputError(
                f"the {what} has {stored} of its {count} stored pieces: finish writing it, with "
                "write_empty_chunks=True"
            )
        return
    for piece in pieces(values):
        file = file_of(values, piece)
        if not file.is_file():
            stored = _stored_files(values)
            raise InputError(
                f"{file}: is missing; the {what} has {stored} of its {count} stored "
                "pieces: finish writing it, with write_empty_chunks=True"
            )
    size = prod(stored_shape(values)) * values.dtype.itemsize
    plain = is_plain(values)
    for piece in pieces(values):
        file = file_of(values, piece)
        bytes_on_disk = file.stat().st_size
        if bytes_on_disk != size and (plain or bytes_on_disk > 2 * size + BEYOND):
            raise InputError(
                f"{file}: {bytes_on_disk} bytes instead of {size}; write the {what} again"
            )
    if values.shards is not None:
        for piece in pieces(values):
            _refuse_half_a_shard(values, piece, what)


def _stored_files(values: zarr.Array[Any]) -> int:
    """How many files of an array hold pieces of it."""
    count = 0
    for _, _, names in os.walk(place_of(values)):
        for name in names:
            count += not name.endswith("zarr.json") and not name.startswith(".z")
    return count


def _refuse_half_a_shard(values: zarr.Array[Any], piece: Piece, what: str) -> None:
    """Check that a shard holds all its chunks that are in the array."""
    file = file_of(values, piece)
    shard = stored_shape(values)
    chunk = values.chunks
    across = [whole // part for whole, part in zip(shard, chunk, strict=True)]
    index = _shard_index(values, file, prod(across), what).reshape(*across, 2)
    # The shard's first cell, and its chunks that are in the array.
    start = [at * whole for at, whole in zip(piece, shard, strict=True)]
    inside = []
    for whole, size, first, part in zip(shard, values.shape, start, chunk, strict=True):
        inside.append(slice(ceil(min(whole, size - first) / part)))
    index = index[tuple(inside)]
    absent = (index == MISSING).any(-1)
    if absent.any():
        numbers = np.argwhere(absent)[0].tolist()
        place = [
            first + number * part for first, number, part in zip(start, numbers, chunk, strict=True)
        ]
        raise InputError(
            f"{file}: lacks {absent.sum()} of its {absent.size} chunks, the first at {place}: finish "
            f"writing the {what}, with write_empty_chunks=True"
        )
    offsets, lengths = index.reshape(-1, 2).T
    stored = np.uint64(file.stat().st_size)
    if (offsets > stored).any() or (lengths > stored - offsets).any():
        raise InputError(f"{file}: is cut short; write the {what} again")
    if (lengths > 2 * prod(chunk) * values.dtype.itemsize + BEYOND).any():
        raise InputError(
            f"{file}: a chunk of it has {lengths.max():,} bytes, more than its shape allows; write the "
            f"{what} again"
        )


def _shard_index(
    values: zarr.Array[Any], file: Path, count: int, what: str
) -> npt.NDArray[np.uint64]:
    """Read the offset and length of each chunk of a shard: uint64 [count, 2]."""
    metadata = values.metadata
    assert isinstance(metadata, ArrayV3Metadata)
    codec = metadata.codecs[0]
    assert isinstance(codec, ShardingCodec)
    # Bytes in little-endian order, and a CRC-32C after them.
    checksum = 4 * (len(codec.index_codecs) - 1)
    size = 16 * count + checksum
    start = 0
    if codec.index_location.value != "start":
        start = max(0, file.stat().st_size - size)
    with file.open("rb") as opened:
        opened.seek(start)
        raw = opened.read(size)
    if len(raw) != size:
        raise InputError(f"{file}: is cut short; write the {what} again")
    return np.frombuffer(raw[: 16 * count], "<u8").reshape(-1, 2)


def stored_shape(values: zarr.Array[Any]) -> tuple[int, ...]:
    """Find the shape of one stored piece."""
    return values.shards or values.chunks


def pieces(values: zarr.Array[Any]) -> Iterator[Piece]:
    """List all pieces, one by one: metadata may claim more than there is memory for."""
    across = _pieces_across(values)
    for number in range(prod(across)):
        piece: Piece = ()
        for count in reversed(across):
            number, place = divmod(number, count)
            piece = (place, *piece)
        yield piece


def _pieces_across(values: zarr.Array[Any]) -> list[int]:
    return [
        ceil(size / piece) for size, piece in zip(values.shape, stored_shape(values), strict=True)
    ]


def place_of(values: zarr.Array[Any]) -> str:
    """Name the array in messages."""
    if isinstance(values.store, LocalStore):
        return str(values.store.root / values.path)
    return "the similarity array"


def file_of(values: zarr.Array[Any], piece: Piece) -> Path:
    """Find the file of a piece."""
    return Path(place_of(values)) / values.metadata.encode_chunk_key(piece)


def damaged(values: zarr.Array[Any], piece: Piece, error: Exception) -> InputError:
    """Make the error for a piece that cannot be read."""
    return InputError(
        f"{file_of(values, piece)}: is damaged ({first_line(error)}); write the similarity array again"
    )
