"""Arrays of an .npz. A member is read and inflated in one piece, and must have the size and checksum that it declares.

np.load inflates some kB at a time with zlib, and parses every header anew: twice the time for one small file an image.
"""

import io
import math
import os
import struct
import zipfile
import zlib
from functools import lru_cache
from typing import BinaryIO

import deflate
import numpy as np
from numpy.lib import format as npy_format

LARGEST = 1 << 28  # bytes of a member; no network gives more, a damaged or hostile header may
LONGEST = 10_000  # bytes of an array's header; numpy parses no longer one either
LOCAL_HEADER = struct.Struct("<4s22xHH")  # of a member: its mark; lengths of its name and extra field
# How an array begins, in each version -> digits of its header's length.
DIGITS = {npy_format.magic(1, 0): 2, npy_format.magic(2, 0): 4, npy_format.magic(3, 0): 4}
PREFIX = npy_format.MAGIC_LEN + 4  # bytes of an array's header with its length, in any version


class Arrays:
    """The arrays of an .npz by name. Nothing is unpickled."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._zip = file, zipfile.ZipFile(file)
        self.members = {info.filename.removesuffix(".npy"): info for info in self._zip.infolist()}

    def shape(self, name: str) -> tuple[int, ...]:
        """Read the shape of an array from its header."""
        info = self._member(name)
        self._go_to(info)
        raw = self._file.read(min(info.compress_size, PREFIX + LONGEST))
        if info.compress_type == zipfile.ZIP_DEFLATED:  # no more of it than the header
            inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            prefix = inflate.decompress(raw, PREFIX)
            raw = prefix + inflate.decompress(inflate.unconsumed_tail, _length(prefix) - PREFIX)
        return _header(raw[:_length(raw)])[0]

    def array(self, name: str) -> np.ndarray:
        """Read an array."""
        content = self._content(self._member(name))
        shape, by_columns, dtype = _header(bytes(content[:(start := _length(content))]))
        if dtype.hasobject:
            raise ValueError(f"{name}: holds a pickle")
        expected = start + math.prod(shape) * dtype.itemsize
        if len(content) != expected:
            raise ValueError(f"{name}: expected {expected:,} bytes for an array {list(shape)}, got {len(content):,}")
        return np.ndarray(shape, dtype, content, start, order="F" if by_columns else "C")

    def _member(self, name: str) -> zipfile.ZipInfo:
        """A member that numpy may have written: stored or deflated, not encrypted, and not too large."""
        info = self.members[name]
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
            raise ValueError(f"{info.filename}: is encrypted, or compressed otherwise than numpy does")
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


def _length(content: bytes | bytearray) -> int:
    """Bytes of the header with which an array begins."""
    begin = bytes(content[:npy_format.MAGIC_LEN])
    if begin not in DIGITS:
        major, minor = npy_format.read_magic(io.BytesIO(begin))
        raise ValueError(f"expected an array of format 1.0, 2.0 or 3.0, got {major}.{minor}")
    digits = DIGITS[begin]
    length = int.from_bytes(content[8:8 + digits], "little")
    if not 4 <= length <= LONGEST:
        raise ValueError(f"the header of an array declares {length:,} bytes, expected 4 to {LONGEST:,}")
    return npy_format.MAGIC_LEN + digits + length


@lru_cache(256)
def _header(content: bytes) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Parse a header: shape, whether by columns, dtype. Those of many images are the same bytes."""
    stream = io.BytesIO(content)
    version = npy_format.read_magic(stream)
    read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
    return read(stream)
