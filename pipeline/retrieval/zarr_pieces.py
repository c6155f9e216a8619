"""The pieces in which a zarr array is stored, shards or chunks: which are there, whole, and where each lies."""

from __future__ import annotations

from itertools import product
from math import ceil, prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import zarr
from zarr.codecs import BytesCodec, ShardingCodec
from zarr.core.metadata import ArrayV3Metadata
from zarr.storage import LocalStore

from pipeline.errors import InputError

Piece = tuple[int, int]

# Of a chunk that a shard does not hold its index says this as offset and length (zarr 3, sharding_indexed).
MISSING = np.uint64(2**64 - 1)


def is_plain(values: zarr.Array[Any]) -> bool:
    metadata = values.metadata
    return (isinstance(values.store, LocalStore) and isinstance(metadata, ArrayV3Metadata)
            and len(metadata.codecs) == 1 and isinstance(codec := metadata.codecs[0], BytesCodec)
            and (codec.endian is None or codec.endian.value == "little"))


def refuse_missing(values: zarr.Array[Any]) -> None:
    """Raises InputError with the place of the first piece that is not whole, and how many there are."""
    if not isinstance(values.store, LocalStore):
        # zarr counts the chunks of every stored shard, those beyond the array's edge too.
        stored = values.nchunks_initialized // (prod(stored_shape(values)) // prod(values.chunks))
        if stored != len(pieces(values)):
            raise InputError(f"the similarity array has {stored} of its {len(pieces(values))} stored pieces: finish "
                             "writing it, with write_empty_chunks=True")
        return
    plain = prod(values.chunks) * values.dtype.itemsize if is_plain(values) else None
    missing = [piece for piece in pieces(values) if not file_of(values, piece).is_file()]
    if missing:
        count = len(pieces(values))
        raise InputError(f"{file_of(values, missing[0])}: is missing; the similarity array has "
                         f"{count - len(missing)} of its {count} stored pieces: finish writing it, with "
                         "write_empty_chunks=True")
    for piece in pieces(values):
        file = file_of(values, piece)
        if plain is not None and file.stat().st_size != plain:
            raise InputError(f"{file}: expected a chunk of {plain} bytes, received {file.stat().st_size}; write the "
                             "similarity array again")
        if values.shards is not None:
            _refuse_half_a_shard(values, piece)


def _refuse_half_a_shard(values: zarr.Array[Any], piece: Piece) -> None:
    """Raises InputError where a shard lacks one of the chunks that lie in the array, or its index does not read."""
    file, shard, chunk = file_of(values, piece), stored_shape(values), values.chunks
    across = [whole // part for whole, part in zip(shard, chunk, strict=True)]
    index = _shard_index(values, file, prod(across)).reshape(*across, 2)
    inside = [ceil(min(whole, size - at * whole) / part)
              for whole, size, at, part in zip(shard, values.shape, piece, chunk, strict=True)]
    lacking = np.argwhere((index[:inside[0], :inside[1]] == MISSING).any(-1))
    if len(lacking):
        row, column = (at * whole + int(place) * part
                       for at, whole, place, part in zip(piece, shard, lacking[0], chunk, strict=True))
        raise InputError(f"{file}: lacks {len(lacking)} of its {prod(inside)} chunks, the first at row {row}, column "
                         f"{column}: finish writing it, with write_empty_chunks=True")
    if (index.reshape(-1, 2)[(index.reshape(-1, 2) != MISSING).all(-1)].sum(1) > file.stat().st_size).any():
        raise InputError(f"{file}: is cut short; write the similarity array again")


def _shard_index(values: zarr.Array[Any], file: Path, count: int) -> npt.NDArray[np.uint64]:
    """Offset and length of each chunk of a shard: uint64 [count, 2]."""
    metadata = values.metadata
    assert isinstance(metadata, ArrayV3Metadata)
    codec = metadata.codecs[0]
    assert isinstance(codec, ShardingCodec)
    checksum = 4 * (len(codec.index_codecs) - 1)  # bytes in little-endian order, and a CRC-32C after them
    size = 16 * count + checksum
    with file.open("rb") as opened:
        opened.seek(0 if codec.index_location.value == "start" else max(0, file.stat().st_size - size))
        raw = opened.read(size)
    if len(raw) != size:
        raise InputError(f"{file}: is cut short; write the similarity array again")
    return np.frombuffer(raw[:16 * count], "<u8").reshape(-1, 2)


def stored_shape(values: zarr.Array[Any]) -> tuple[int, ...]:
    return values.shards or values.chunks


def pieces(values: zarr.Array[Any]) -> list[Piece]:
    """The places of all shards, or chunks where there are no shards, among their like."""
    counts = [ceil(size / piece) for size, piece in zip(values.shape, stored_shape(values), strict=True)]
    return list(product(range(counts[0]), range(counts[1])))


def place_of(values: zarr.Array[Any]) -> str:
    return str(values.store.root / values.path) if isinstance(values.store, LocalStore) else "the similarity array"


def file_of(values: zarr.Array[Any], piece: Piece) -> Path:
    return Path(place_of(values)) / values.metadata.encode_chunk_key(piece)


def damaged(values: zarr.Array[Any], piece: Piece, error: Exception) -> InputError:
    place = file_of(values, piece) if isinstance(values.store, LocalStore) else f"{place_of(values)}, piece {piece}"
    return InputError(f"{place}: is damaged ({said(error)}); write the similarity array again")


def said(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")[:100] or type(error).__name__
