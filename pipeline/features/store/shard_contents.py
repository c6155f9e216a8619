"""A shard read whole: the checksums of its files, the values of its arrays, and a digest of each image's."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.features.store import ledger, shard_file
from pipeline.features.store.layout import DONE, PLAIN, StoreLayout
from pipeline.files import blake


@dataclass(frozen=True)
class ShardContents:
    """A shard as it is on disk.

    Attributes:
        rows: The rows of its images.
        checksums: Array -> checksum of its file, "" where that is missing.
        arrays: Array -> [images of the shard, ...]; arrays whose file is missing or damaged are left out.
        bytes: The size of all files.
    """

    rows: range
    checksums: dict[str, str]
    arrays: dict[str, np.ndarray]
    bytes: int

    @property
    def values(self) -> dict[int, str]:
        """Row -> digest of the image, see `values`; {} where an array is left out."""
        return values(self.rows, self.arrays) if self.arrays.keys() == self.checksums.keys() else {}


def read(path: Path, layout: StoreLayout, shard: int) -> ShardContents:
    """Read a shard. Each file is read once."""
    rows, size = layout.rows(shard), 0
    checksums, arrays = {}, {}
    for name, (shape, dtype) in layout.arrays().items():
        file = file_of(path, layout, name, shard)
        content = file.read_bytes() if file.exists() else None
        checksums[name] = "" if content is None else blake.of_bytes(content)
        if content is None:
            continue
        size += len(content)
        found = _plain(content, layout, len(rows), shape, dtype) if name in PLAIN else shard_file.decode(
            content, layout.shard_images, len(rows), shape, dtype, layout.compressor)
        if found is not None:
            arrays[name] = found
    return ShardContents(rows, checksums, arrays, size)


def file_of(path: Path, layout: StoreLayout, name: str, shard: int) -> Path:
    """Name the file of a shard of an array."""
    return ledger.shard_file(path, name, shard, 1 + len(layout.arrays()[name][0]))


def _plain(content: bytes, layout: StoreLayout, count: int, shape: tuple[int, ...], dtype: str) -> np.ndarray | None:
    kind = np.dtype(dtype).newbyteorder("<")
    if len(content) != layout.shard_images * int(np.prod(shape, dtype=np.int64)) * kind.itemsize:
        return None
    return np.frombuffer(content, kind).reshape(-1, *shape)[:count]


def values(rows: range, arrays: Mapping[str, np.ndarray]) -> dict[int, str]:
    """Digest the values of each image: its features and what is stored beside them, valid items alone, and its size.

    It gives row -> BLAKE2b-128 in hexadecimal digits, of the images that did not fail.
    """
    by_item = sorted(arrays.keys() - PLAIN.keys())
    found = {}
    for place in np.flatnonzero(arrays["status"] == DONE).tolist():
        count = int(arrays["counts"][place])
        digest = hashlib.blake2b(digest_size=16)
        for name in [*by_item, "sizes"]:
            part = arrays[name][place] if name == "sizes" else arrays[name][place, :count]
            digest.update(f"{name} {part.dtype.name} {part.shape}".encode())
            digest.update(np.ascontiguousarray(part, part.dtype.newbyteorder("<")).data)
        found[rows.start + place] = digest.hexdigest()
    return found
