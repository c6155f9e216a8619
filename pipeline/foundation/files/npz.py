"""Arrays of an .npz. A member is read and inflated in one piece, and must have the size and
checksum that it declares.

np.load inflates some kB at a time with zlib, and parses every header anew: twice the time for one
small file an image.
"""

import os
import struct
import zipfile
import zlib
from functools import lru_cache
from typing import BinaryIO, Literal

import deflate
import numpy as np

from pipeline.foundation.files import npy

LARGEST = 1 << 28  # bytes of a member; no network gives more, a damaged or hostile header may
EXPANDS = 1033  # by how much deflate shrinks bytes at most
# Of a member: its mark; lengths of its name and extra field
LOCAL_HEADER = struct.Struct("<4s22xHH")


class Arrays:
    """The arrays of an .npz by name. Nothing is unpickled."""

    def __init__(self, file: BinaryIO, largest: int | None = None) -> None:
        """Open an archive. largest: the most bytes of a member that is read; None for `LARGEST`."""
        self._file = file
        self._zip = zipfile.ZipFile(file)
        self._largest = LARGEST
        if largest is not None:
            self._largest = largest
        members = self._zip.infolist()
        self.members = {info.filename.removesuffix(".npy"): info for info in members}
        if len(self.members) < len(members):
            raise ValueError("holds a member twice")

    def shape(self, name: str) -> tuple[int, ...]:
        """Read the shape of an array from its header."""
        return self.header(name).shape

    def header(self, name: str) -> npy.Header:
        """Read the header of an array."""
        info = self._member(name, header_alone=True)
        self._go_to(info)
        longest = npy.PREFIX + npy.LONGEST
        raw = self._file.read(min(info.compress_size, longest))
        if info.compress_type == zipfile.ZIP_DEFLATED:  # no more of it than the header
            inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            prefix = inflate.decompress(raw, npy.PREFIX)
            rest = npy.length(prefix) - npy.PREFIX
            raw = prefix + inflate.decompress(inflate.unconsumed_tail, rest)
        return _header(raw[: npy.length(raw)])

    def stored_at(self, name: str) -> tuple[int, int]:
        """Find where the bytes of a member that is not compressed begin in the file, and how many
        they are.
        """
        info = self.members[name]
        size = info.file_size
        is_stored = info.compress_type == zipfile.ZIP_STORED and size == info.compress_size
        if not is_stored or _is_encrypted(info):
            raise ValueError(f"{info.filename}: is compressed or encrypted")
        self._go_to(info)
        start = self._file.tell()
        end = os.fstat(self._file.fileno()).st_size
        if start + size > end:
            raise ValueError(f"{info.filename}: is cut short")
        return start, size

    def mapped_at(self, name: str) -> int | None:
        """Find where an array begins in the file; None for one that is compressed."""
        if self.members[name].compress_type != zipfile.ZIP_STORED:
            return None
        return self.stored_at(name)[0]

    def array(self, name: str) -> np.ndarray:
        """Read an array."""
        content = self._content(self._member(name))
        header = _header(bytes(content[: npy.length(content)]))
        if header.dtype.hasobject:
            raise ValueError(f"{name}: holds a pickle")
        shape = header.shape
        if len(content) != header.end:
            raise ValueError(
                f"{name}: expected {header.end:,} bytes for an array {list(shape)}, got "
                f"{len(content):,}"
            )
        order: Literal["F", "C"] = "F" if header.by_columns else "C"
        return np.ndarray(shape, header.dtype, content, header.start, order=order)

    def _member(self, name: str, header_alone: bool = False) -> zipfile.ZipInfo:
        """A member that numpy may have written: stored or deflated, not encrypted, and not too
        large.
        """
        info = self.members[name]
        is_stored = info.compress_type == zipfile.ZIP_STORED
        is_known = is_stored or info.compress_type == zipfile.ZIP_DEFLATED
        if not is_known or _is_encrypted(info):
            raise ValueError(f"{info.filename}: is encrypted, or not compressed as numpy does it")
        size = max(info.file_size, info.compress_size)
        is_all_read = not (is_stored and header_alone)
        if is_all_read and size > self._largest:
            raise ValueError(
                f"{info.filename}: declares {size:,} bytes, more than the {self._largest:,} that are read "
                "from an .npz; save them as .npy"
            )
        if size > EXPANDS * (info.compress_size + 1):
            raise ValueError(
                f"{info.filename}: declares {size:,} bytes, more than its {info.compress_size:,} hold"
            )
        return info

    def _content(self, info: zipfile.ZipInfo) -> bytes | bytearray:
        if info.compress_type == zipfile.ZIP_STORED:
            return self._zip.read(info)
        self._go_to(info)
        content = deflate.deflate_decompress(self._file.read(info.compress_size), info.file_size)
        if len(content) != info.file_size or deflate.crc32(content) != info.CRC:
            raise ValueError(
                f"{info.filename}: is damaged, size or checksum are not those that it declares"
            )
        return content

    def _go_to(self, info: zipfile.ZipInfo) -> None:
        self._file.seek(info.header_offset)
        header = self._file.read(LOCAL_HEADER.size)
        if len(header) < LOCAL_HEADER.size:
            raise ValueError(f"{info.filename}: is cut short")
        mark, *lengths = LOCAL_HEADER.unpack(header)
        if mark != b"PK\3\4":
            raise ValueError(f"{info.filename}: is not where the file says")
        self._file.seek(sum(lengths), os.SEEK_CUR)


def _is_encrypted(info: zipfile.ZipInfo) -> bool:
    return bool(info.flag_bits & 1)


@lru_cache(256)
def _header(content: bytes) -> npy.Header:
    """Parse a header. Those of many images are the same bytes."""
    return npy.parse(content)
