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

from pipeline.compute import by_path
from pipeline.evaluation.retrieval.blocks import (
    CACHED_BYTES,
    Ids,
    Index,
    Matrix,
    crossed,
    row_blocks,
    working_size,
)
from pipeline.files.zarr_arrays import checked, is_plain, open_array
from pipeline.parts.errors import InputError, first_line, short_of_memory

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
        size, chunks = (
            working_size(self.values.dtype),
            (self.values.chunks[0], self.values.chunks[1]),
        )
        if self.mapped:
            return _within_chunks(shape, chunks, max(1, min(block_bytes, CACHED_BYTES) // size))
        return row_blocks(shape, block_bytes // size, chunks)

    def _read(self, images: Index, captions: Index) -> np.ndarray:
        if self.mapped:
            return self._as_opened(partial(self.mapped.block, images, captions))
        return self._as_opened(
            partial(self._decoded, lambda: np.asarray(self.values.oindex[images, captions]))
        )

    def _read_pairs(self, images: Ids, captions: Ids) -> np.ndarray:
        if self.mapped:
            return self._as_opened(partial(self.mapped.pairs, images, captions))
        return self._as_opened(
            partial(self._decoded, lambda: np.asarray(self.values.vindex[images, captions]))
        )

    def _as_opened(self, read: Callable[[], Read]) -> Read:
        """Read from the array that was opened, and refuse one that has replaced it since."""
        try:
            return read()
        finally:  # an array that was replaced is refused as replaced, not as damaged
            if isinstance(self.values.store, LocalStore):
                by_path.refuse_replaced(Path(place_of(self.values)), self.written)

    def _decoded(self, read: Callable[[], Read]) -> Read:
        """Call a reader of zarr."""
        try:
            return read()
        except Exception as error:  # codecs raise many kinds on bytes that they did not write
            if short_of_memory(error):
                raise
            for piece in pieces(self.values):
                area = tuple(
                    slice(at * size, (at + 1) * size)
                    for at, size in zip(piece, stored_shape(self.values), strict=True)
                )
                try:
                    _ = self.values[area]
                except Exception as damage:
                    raise damaged(self.values, piece, damage) from None
            raise InputError(
                f"{place_of(self.values)}: cannot be read ({first_line(error)}); write it again"
            ) from None


class _Mapped:
    """Chunks whose files hold the bytes as they are in memory; only the cells that are needed are
    read.
    """

    def __init__(self, values: zarr.Array[Any]) -> None:
        self.values, self.chunks = values, (values.chunks[0], values.chunks[1])
        self.dtype = values.dtype.newbyteorder("<")
        # A block of columns lies in all chunks of a column. Their maps are kept: a new map would
        # read each page again.
        down = ceil(values.shape[0] / values.chunks[0])
        self._chunk = lru_cache(maxsize=down + 4)(partial(_map, values, self.dtype))

    def __reduce__(self) -> tuple[Any, ...]:
        return _Mapped, (self.values,)

    def block(self, images: Index, captions: Index) -> np.ndarray:
        parts = [
            _by_chunk(index, size, chunk)
            for index, size, chunk in zip(
                (images, captions), self.values.shape, self.chunks, strict=True
            )
        ]
        if all(len(part) == 1 for part in parts) and all(
            isinstance(part[0][2], slice) for part in parts
        ):
            (row, _, rows), (column, _, columns) = parts[0][0], parts[1][0]
            return self._chunk((row, column))[rows, columns]
        out = np.empty([sum(_length(at) for _, at, _ in part) for part in parts], self.dtype)
        for (row, top, rows), (column, left, columns) in product(*parts):
            out[crossed(top, left)] = self._chunk((row, column))[crossed(rows, columns)]
        return out

    def pairs(self, images: Ids, captions: Ids) -> np.ndarray:
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


def _map(values: zarr.Array[Any], dtype: np.dtype[Any], piece: Piece) -> np.ndarray:
    try:
        return np.asarray(np.memmap(file_of(values, piece), dtype, "r", shape=values.chunks))
    except (OSError, ValueError) as error:
        raise damaged(values, piece, error) from None


def _by_chunk(index: Index, size: int, chunk: int) -> list[tuple[int, Index, Index]]:
    """Divide an index among chunks: each chunk's number, the positions in the result, and those in
    the chunk.
    """
    if isinstance(index, slice):
        first, last, _ = index.indices(size)
        return [
            (
                number,
                slice(max(number * chunk, first) - first, min((number + 1) * chunk, last) - first),
                slice(max(first - number * chunk, 0), min(last - number * chunk, chunk)),
            )
            for number in range(first // chunk, ceil(last / chunk))
        ]
    numbers = index // chunk
    return [
        (int(number), np.flatnonzero(numbers == number), index[numbers == number] - number * chunk)
        for number in np.unique(numbers)
    ]


def _length(index: Index) -> int:
    return index.stop - index.start if isinstance(index, slice) else len(index)


def _within_chunks(
    shape: tuple[int, int], chunks: tuple[int, int], cells: int
) -> Iterator[tuple[slice, slice]]:
    """Cut a shape into blocks of at most `cells`, each within one chunk."""
    wide = min(chunks[1], shape[1], cells)
    tall = max(1, min(chunks[0], cells // wide))
    return product(_steps(shape[0], chunks[0], tall), _steps(shape[1], chunks[1], wide))


def _steps(size: int, chunk: int, step: int) -> list[slice]:
    return [
        slice(start, min(start + step, first + chunk, size))
        for first in range(0, size, chunk)
        for start in range(first, min(first + chunk, size), step)
    ]


def open_zarr(path: Path) -> zarr.Array[Any]:
    """Open a zarr array, read-only."""
    return open_array(path, "similarity matrix")


def refuse_missing(values: zarr.Array[Any], what: str = "similarity array") -> None:
    """Refuse an array with missing pieces, which zarr would read as the fill value."""
    count = prod(_pieces_across(values))
    if not isinstance(values.store, LocalStore):
        # zarr counts the chunks of every stored shard, those beyond the array's edge too.
        stored = values.nchunks_initialized // (prod(stored_shape(values)) // prod(values.chunks))
        if stored != count:
            raise InputError(
                f"the {what} has {stored} of its {count} stored pieces: finish writing it, with "
                "write_empty_chunks=True"
            )
        return
    missing = next(
        (piece for piece in pieces(values) if not file_of(values, piece).is_file()), None
    )
    if missing is not None:
        stored = sum(
            not name.endswith("zarr.json") and not name.startswith(".z")
            for *_, names in os.walk(place_of(values))
            for name in names
        )
        raise InputError(
            f"{file_of(values, missing)}: is missing; the {what} has {stored} of its {count} stored "
            "pieces: finish writing it, with write_empty_chunks=True"
        )
    size, plain = prod(stored_shape(values)) * values.dtype.itemsize, is_plain(values)
    for piece in pieces(values):
        bytes_on_disk = file_of(values, piece).stat().st_size
        if bytes_on_disk != size and (plain or bytes_on_disk > 2 * size + BEYOND):
            raise InputError(
                f"{file_of(values, piece)}: {bytes_on_disk} bytes instead of {size}; write the "
                f"{what} again"
            )
    for piece in pieces(values) if values.shards is not None else ():
        _refuse_half_a_shard(values, piece, what)


def _refuse_half_a_shard(values: zarr.Array[Any], piece: Piece, what: str) -> None:
    """Check that a shard holds all its chunks that are in the array."""
    file, shard, chunk = file_of(values, piece), stored_shape(values), values.chunks
    across = [whole // part for whole, part in zip(shard, chunk, strict=True)]
    index = _shard_index(values, file, prod(across), what).reshape(*across, 2)
    inside = tuple(
        slice(ceil(min(whole, size - at * whole) / part))
        for whole, size, at, part in zip(shard, values.shape, piece, chunk, strict=True)
    )
    absent = (index[inside] == MISSING).any(-1)
    if absent.any():
        place = [
            at * whole + int(number) * part
            for at, whole, number, part in zip(
                piece, shard, np.argwhere(absent)[0], chunk, strict=True
            )
        ]
        raise InputError(
            f"{file}: lacks {absent.sum()} of its {absent.size} chunks, the first at {place}: finish "
            f"writing the {what}, with write_empty_chunks=True"
        )
    offsets, lengths = index[inside].reshape(-1, 2).T
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
    checksum = 4 * (
        len(codec.index_codecs) - 1
    )  # bytes in little-endian order, and a CRC-32C after them
    size = 16 * count + checksum
    with file.open("rb") as opened:
        opened.seek(
            0 if codec.index_location.value == "start" else max(0, file.stat().st_size - size)
        )
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
    return (
        str(values.store.root / values.path)
        if isinstance(values.store, LocalStore)
        else "the similarity array"
    )


def file_of(values: zarr.Array[Any], piece: Piece) -> Path:
    """Find the file of a piece."""
    return Path(place_of(values)) / values.metadata.encode_chunk_key(piece)


def damaged(values: zarr.Array[Any], piece: Piece, error: Exception) -> InputError:
    """Make the error for a piece that cannot be read."""
    return InputError(
        f"{file_of(values, piece)}: is damaged ({first_line(error)}); write the similarity array again"
    )
