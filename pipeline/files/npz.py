"""Arrays of an .npz. A member is read and inflated in one piece, and must have the size and checksum that it declares.

np.load inflates some kB at a time with zlib, and parses every header anew: twice the time for one small file an image.
"""

import os
import struct
import zipfile
import zlib
from functools import lru_cache
from typing import BinaryIO

import deflate
import numpy as np

from pipeline.files import npy

LARGEST = 1 << 28  # bytes of a member; no network gives more, a damaged or hostile header may
LOCAL_HEADER = struct.Struct("<4s22xHH")  # of a member: its mark; lengths of its name and extra field


class Arrays:
    """The arrays of an .npz by name. Nothing is unpickled."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._zip = file, zipfile.ZipFile(file)
        self.members = {info.filename.removesuffix(".npy"): info for info in self._zip.infolist()}

    def shape(self, name: str) -> tuple[int, ...]:
        """Read the shape of an array from its header."""
        info = self._member(name)
        self._go_to(info)
        raw = self._file.read(min(info.compress_size, npy.PREFIX + npy.LONGEST))
        if info.compress_type == zipfile.ZIP_DEFLATED:  # no more of it than the header
            inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            prefix = inflate.decompress(raw, npy.PREFIX)
            raw = prefix + inflate.decompress(inflate.unconsumed_tail, npy.length(prefix) - npy.PREFIX)
        return _header(raw[:npy.length(raw)]).shape

    def array(self, name: str) -> np.ndarray:
        """Read an array."""
        content = self._content(self._member(name))
        header = _header(bytes(content[:npy.length(content)]))
        if header.dtype.hasobject:
            raise ValueError(f"{name}: holds a pickle")
        if len(content) != header.end:
            raise ValueError(f"{name}: expected {header.end:,} bytes for an array {list(header.shape)}, got "
                             f"{len(content):,}")
        return np.ndarray(header.shape, header.dtype, content, header.start, order="F" if header.by_columns else "C")

    def _member(self, name: str) -> zipfile.ZipInfo:
        """A member that numpy may have written: stored or deflated, not encrypted, and not too large."""
        info = self.members[name]
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
            raise ValueError(f"{info.filename}: is encrypted, or not compressed as numpy does it")
        if (size := max(info.file_size, info.compress_size)) > LARGEST:
            raise ValueError(f"{info.filename}: declares {size:,} bytes, more than the {LARGEST:,} that an "
                             "image's features may have in an .npz; save them as .npy")
        return info

    def _content(self, info: zipfile.ZipInfo) -> bytes | bytearray:
        if info.compress_type == zipfile.ZIP_STORED:
            return self._zip.read(info)
        self._go_to(info)
        content = deflate.deflate_decompress(self._file.read(info.compress_size), info.file_size)
        if len(content) != info.file_size or deflate.crc32(content) != info.CRC:
            raise ValueError(f"{info.filename}: is damaged, size or checksum are not those that it declares")
        return content

    def _go_to(self, info: zipfile.ZipInfo) -> None:
        """Go to a member's content in the file."""
        self._file.seek(info.header_offset)
        mark, *lengths = LOCAL_HEADER.unpack(self._file.read(LOCAL_HEADER.size))
        if mark != b"PK\3\4":
            raise ValueError(f"{info.filename}: is not where the file says")
        self._file.seek(sum(lengths), os.SEEK_CUR)


@lru_cache(256)
def _header(content: bytes) -> npy.Header:
    """Parse a header. Those of many images are the same bytes."""
    return npy.parse(content)
