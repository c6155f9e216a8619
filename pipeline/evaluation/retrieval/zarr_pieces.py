"""The pieces in which a zarr array is stored, shards or chunks: whether all are complete, and the file of each."""

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

from pipeline.parts.errors import InputError

Piece = tuple[int, ...]

# Offset and length, in a shard's index, of a chunk that the shard does not hold (zarr 3, sharding_indexed).
MISSING = np.uint64(2**64 - 1)


def is_plain(values: zarr.Array[Any]) -> bool:
    """Find out whether each chunk is a file of the array's bytes as they are in memory."""
    metadata = values.metadata
    return (isinstance(values.store, LocalStore) and isinstance(metadata, ArrayV3Metadata)
            and len(metadata.codecs) == 1 and isinstance(codec := metadata.codecs[0], BytesCodec)
            and (codec.endian is None or codec.endian.value == "little"))


def refuse_missing(values: zarr.Array[Any], what: str = "similarity array") -> None:
    """Refuse an array with missing pieces, which zarr would read as the fill value."""
    every = pieces(values)
    if not isinstance(values.store, LocalStore):
        # zarr counts the chunks of every stored shard, those beyond the array's edge too.
        stored = values.nchunks_initialized // (prod(stored_shape(values)) // prod(values.chunks))
        if stored != len(every):
            raise InputError(f"the {what} has {stored} of its {len(every)} stored pieces: finish writing it, with "
                             "write_empty_chunks=True")
        return
    missing = [piece for piece in every if not file_of(values, piece).is_file()]
    if missing:
        raise InputError(f"{file_of(values, missing[0])}: is missing; the {what} has {len(every) - len(missing)} of "
                         f"its {len(every)} stored pieces: finish writing it, with write_empty_chunks=True")
    size = prod(values.chunks) * values.dtype.itemsize
    for piece in every if is_plain(values) else ():
        found = file_of(values, piece).stat().st_size
        if found != size:
            raise InputError(f"{file_of(values, piece)}: expected a chunk of {size} bytes, received {found}; write "
                             f"the {what} again")
    for piece in every if values.shards is not None else ():
        _refuse_half_a_shard(values, piece, what)


def _refuse_half_a_shard(values: zarr.Array[Any], piece: Piece, what: str) -> None:
    """Check that a shard holds all its chunks that lie in the array."""
    file, shard, chunk = file_of(values, piece), stored_shape(values), values.chunks
    across = [whole // part for whole, part in zip(shard, chunk, strict=True)]
    index = _shard_index(values, file, prod(across), what).reshape(*across, 2)
    inside = tuple(slice(ceil(min(whole, size - at * whole) / part))
                   for whole, size, at, part in zip(shard, values.shape, piece, chunk, strict=True))
    absent = (index[inside] == MISSING).any(-1)
    if absent.any():
        place = [at * whole + int(number) * part
                 for at, whole, number, part in zip(piece, shard, np.argwhere(absent)[0], chunk, strict=True)]
        raise InputError(f"{file}: lacks {absent.sum()} of its {absent.size} chunks, the first at {place}: finish "
                         f"writing the {what}, with write_empty_chunks=True")
    if (index[inside].reshape(-1, 2).sum(1) > file.stat().st_size).any():
        raise InputError(f"{file}: is cut short; write the {what} again")


def _shard_index(values: zarr.Array[Any], file: Path, count: int, what: str) -> npt.NDArray[np.uint64]:
    """Read the offset and length of each chunk of a shard: uint64 [count, 2]."""
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
        raise InputError(f"{file}: is cut short; write the {what} again")
    return np.frombuffer(raw[:16 * count], "<u8").reshape(-1, 2)


def stored_shape(values: zarr.Array[Any]) -> tuple[int, ...]:
    """Find the shape of one stored piece."""
    return values.shards or values.chunks


def pieces(values: zarr.Array[Any]) -> list[Piece]:
    """List all pieces."""
    counts = [ceil(size / piece) for size, piece in zip(values.shape, stored_shape(values), strict=True)]
    return list(product(*map(range, counts)))


def place_of(values: zarr.Array[Any]) -> str:
    """Name the array in messages."""
    return str(values.store.root / values.path) if isinstance(values.store, LocalStore) else "the similarity array"


def file_of(values: zarr.Array[Any], piece: Piece) -> Path:
    """Find the file of a piece."""
    return Path(place_of(values)) / values.metadata.encode_chunk_key(piece)


def damaged(values: zarr.Array[Any], piece: Piece, error: Exception) -> InputError:
    """Make the error for a piece that cannot be read."""
    return InputError(f"{file_of(values, piece)}: is damaged ({said(error)}); write the similarity array again")


def said(error: Exception) -> str:
    """Shorten a codec's error for a message."""
    return next(iter(str(error).splitlines()), "")[:100] or type(error).__name__
