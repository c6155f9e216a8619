"""A shard's file by the zarr 3 specification: the images' chunks one after another, then an index.

The index at the end holds offset and length of every chunk (little-endian uint64; all ones where there is none) and a
CRC-32C. Written and read here, not by zarr, whose codec takes ten times as long for either; any zarr library reads
the file (https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed).
"""

import os
from collections.abc import Iterator
from pathlib import Path

import google_crc32c
import numpy as np
from numcodecs.zstd import Zstd

from pipeline.files.atomic import replacing

MISSING = np.uint64(2**64 - 1)
CRC = 4  # bytes
ZSTD = Zstd(level=1)


def write(path: Path, values: np.ndarray, images: int, compressor: str) -> None:
    """Write a shard. The file appears complete, and is on disk then. `values` is [S', ...], an entry for each image."""
    index = np.full((images, 2), MISSING)
    offset = 0
    with replacing(path) as partial, partial.open("wb") as file:
        for place, chunk in enumerate(_chunks(values, compressor)):
            index[place] = offset, len(chunk)
            offset += file.write(chunk)
        raw = index.astype("<u8").tobytes()
        file.write(raw + google_crc32c.value(raw).to_bytes(CRC, "little"))


def _chunks(values: np.ndarray, compressor: str) -> Iterator[bytes | memoryview]:
    values = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    for chunk in values:
        yield ZSTD.encode(chunk) if compressor == "zstd" else memoryview(chunk.reshape(-1)).cast("B")


def decode(content: bytes, images: int, count: int, shape: tuple[int, ...], dtype: str, compressor: str
           ) -> np.ndarray | None:
    """Decode the images of a shard: [S', ...]; None if the bytes are no such shard."""
    index = index_of(content[max(len(content) - images * 16 - CRC, 0):], images, len(content))
    values = np.empty((count, *shape), np.dtype(dtype).newbyteorder("<"))
    if index is None or (index[:count] == MISSING).any():
        return None
    try:
        for place, (offset, length) in enumerate(index[:count].tolist()):
            chunk = content[offset:offset + length]
            raw = ZSTD.decode(chunk) if compressor == "zstd" else chunk
            values[place] = np.frombuffer(raw, values.dtype).reshape(shape)
    except (RuntimeError, ValueError):
        return None
    return values


def read_index(descriptor: int, images: int) -> np.ndarray | None:
    """Read the index of an open file.

    It gives uint64 [S, 2], offset and length of each chunk; None if the file is cut short or its checksum is wrong.
    """
    size, end = images * 16, os.fstat(descriptor).st_size
    return index_of(os.pread(descriptor, size + CRC, max(end - size - CRC, 0)), images, end)


def index_of(raw: bytes, images: int, end: int) -> np.ndarray | None:
    """Read an index."""
    size = images * 16
    if len(raw) != size + CRC or google_crc32c.value(raw[:size]).to_bytes(CRC, "little") != raw[size:]:
        return None
    index = np.frombuffer(raw[:size], "<u8").reshape(-1, 2)
    there = index[index[:, 0] != MISSING]
    return index if (there <= end).all() and int(there.sum(axis=1).max(initial=0)) <= end else None
