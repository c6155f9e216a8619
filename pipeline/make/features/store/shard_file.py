"""The files of a shard: a file of features by the zarr 3 specification, and a shard read whole.

A file of features has the rows' chunks one after another, then an index: offset and length of every
chunk (little-endian uint64; all ones where there is none) and a CRC-32C. It is written and read
here, not by zarr, whose codec takes ten times as long for either; any zarr library reads the file
(https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed).
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import google_crc32c
import numpy as np
from numcodecs.zstd import Zstd

from pipeline.foundation.files import atomic, blake
from pipeline.foundation.parts.errors import short_of_memory
from pipeline.make.features.store import ledger
from pipeline.make.features.store.layout import DONE, PLAIN, StoreLayout, unused_value

MISSING = np.uint64(2**64 - 1)
CRC = 4  # bytes
ZSTD = Zstd(level=1)


def write_plain(path: Path, values: np.ndarray, rows: int) -> None:
    """Write a shard of an array of a few numbers per row in zarr's format; zarr itself takes 5 ms
    for each.
    """
    shape = (rows, *values.shape[1:])
    dtype = values.dtype.newbyteorder("<")
    whole = np.full(shape, unused_value(values.dtype), dtype)
    whole[: len(values)] = values
    atomic.write_bytes(path, whole.tobytes())


def write(path: Path, values: np.ndarray, rows: int, compressor: str) -> None:
    """Write a shard. The file appears when it is complete and on disk. `values` is [S', ...], an
    entry per row.
    """
    index = np.full((rows, 2), MISSING)
    offset = 0
    stored = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    with atomic.replacing(path) as partial, partial.open("wb") as file:
        for place, row in enumerate(stored):
            if compressor == "zstd":
                chunk = ZSTD.encode(row)
            else:
                chunk = memoryview(row.reshape(-1)).cast("B")
            index[place] = offset, len(chunk)
            offset += file.write(chunk)
        raw = index.astype("<u8").tobytes()
        file.write(raw + _checksum(raw))


def _checksum(raw: bytes) -> bytes:
    """The bytes that follow an index in the file: its CRC-32C."""
    return google_crc32c.value(raw).to_bytes(CRC, "little")


def decode(
    content: bytes, rows: int, count: int, shape: tuple[int, ...], dtype: str, compressor: str
) -> np.ndarray | None:
    """Decode the rows of a shard: [S', ...]; None if the bytes are no such shard."""
    values = np.empty((count, *shape), np.dtype(dtype).newbyteorder("<"))
    end = len(content)
    start_of_index = max(end - rows * 16 - CRC, 0)
    try:
        index = index_of(content[start_of_index:], rows, count, end)
        for place, (offset, length) in enumerate(index[:count].tolist()):
            chunk = content[offset : offset + length]
            take(chunk, compressor, values[place].data.cast("B"))
    except (RuntimeError, ValueError) as error:
        if short_of_memory(error):
            raise
        return None
    return values


def take(chunk: bytes, compressor: str, target: memoryview) -> None:
    """Write a row's values into a buffer of their size; RuntimeError or ValueError where the chunk
    holds others.
    """
    if compressor == "none":
        target[:] = chunk
        return
    for last in (0xFF, 0):  # a chunk that holds less leaves the last byte as it is
        target[-1] = last
        ZSTD.decode(chunk, target)
        if target[-1] != last:
            return
    raise ValueError("holds less")


def read_index(descriptor: int, rows: int, count: int) -> np.ndarray:
    """Read an open file's index, see `index_of`."""
    size = rows * 16 + CRC
    end = os.fstat(descriptor).st_size
    raw = os.pread(descriptor, size, max(end - size, 0))
    return index_of(raw, rows, count, end)


def index_of(raw: bytes, rows: int, count: int, end: int) -> np.ndarray:
    """Read the index of a file of `end` bytes, uint64 [S, 2]: offset and length of each chunk."""
    # ValueError if it is cut short or damaged, or lacks one of the first `count`.
    size = rows * 16
    if len(raw) != size + CRC or _checksum(raw[:size]) != raw[size:]:
        raise ValueError("its index is damaged")
    index = np.frombuffer(raw[:size], "<u8").reshape(-1, 2)
    chunks = index[index[:, 0] != MISSING]
    # Each number first: the sum of two great ones wraps around.
    reaches_beyond = (chunks > end).any() or (chunks.sum(axis=1) > end).any()
    if reaches_beyond or (index[:count] == MISSING).any():
        raise ValueError("its index is not of its chunks")
    return index


@dataclass(frozen=True)
class ShardContents:
    """A shard as it is on disk."""

    rows: range
    checksums: dict[str, str]  # Array -> checksum of its file, "" where that is missing
    # Array -> [rows of the shard, ...]; arrays whose file is missing or damaged are left out.
    arrays: dict[str, np.ndarray]

    @property
    def values(self) -> dict[int, str]:
        """Row -> digest of the row, see `values`; {} where an array is left out."""
        if self.arrays.keys() != self.checksums.keys():
            return {}
        return values(self.rows, self.arrays)


def read(path: Path, layout: StoreLayout, shard: int) -> ShardContents:
    """Read a shard. Each file is read once."""
    rows = layout.rows(shard)
    count = len(rows)
    checksums = {}
    arrays = {}
    for name, (shape, dtype) in layout.arrays().items():
        file = file_of(path, layout, name, shard)
        if not file.exists():
            checksums[name] = ""
            continue
        content = file.read_bytes()
        checksums[name] = blake.of_bytes(content)
        if name in PLAIN:
            values = _plain(content, layout, shape, dtype)
        else:
            values = decode(content, layout.shard_rows, count, shape, dtype, layout.compressor)
        if values is not None:
            arrays[name] = values[:count]
    return ShardContents(rows, checksums, arrays)


def file_of(path: Path, layout: StoreLayout, name: str, shard: int) -> Path:
    """Name the file of a shard of an array."""
    shape, _ = layout.arrays()[name]
    return ledger.shard_file(path, name, shard, 1 + len(shape))


def _plain(
    content: bytes, layout: StoreLayout, shape: tuple[int, ...], dtype: str
) -> np.ndarray | None:
    try:
        values = np.frombuffer(content, np.dtype(dtype).newbyteorder("<"))
        return values.reshape(layout.shard_rows, *shape)
    except ValueError:  # of another length
        return None


def values(rows: range, arrays: Mapping[str, np.ndarray]) -> dict[int, str]:
    """Digest (BLAKE2b-128) what each row that did not fail holds: valid items, what is beside them,
    and its size.
    """
    by_item = sorted(arrays.keys() - PLAIN.keys())
    parts = {}
    kinds = {}  # numpy takes 3 µs to say the name of a dtype
    for name in (*by_item, "sizes"):
        dtype = arrays[name].dtype.newbyteorder("<")
        parts[name] = np.ascontiguousarray(arrays[name], dtype)
        kinds[name] = dtype.name
    digests = {}
    for place in np.flatnonzero(arrays["status"] == DONE).tolist():
        count = int(arrays["counts"][place])
        digest = hashlib.blake2b(digest_size=16)
        for name, values in parts.items():
            part = values[place]
            if name != "sizes":
                part = part[:count]
            digest.update(f"{name} {kinds[name]} {part.shape}".encode())
            digest.update(part.data)
        digests[rows.start + place] = digest.hexdigest()
    return digests


def all_finite(values: np.ndarray) -> bool:
    """Check that no value is infinite or NaN."""
    # Read as integers, such values are the greatest of their sign. So two maxima suffice, which
    # NumPy finds ten times as fast as it converts float16.
    flat = values.reshape(-1)
    signed = flat.view(f"i{values.itemsize}")
    unsigned = flat.view(f"u{values.itemsize}")
    infinity = np.array(np.inf, values.dtype)
    most = infinity.view(signed.dtype)
    least = (-infinity).view(unsigned.dtype)
    return bool(signed.max(initial=0) < most and unsigned.max(initial=0) < least)
