"""How much the content of a file may become: packed text, repeated references, rows of numbers.

A few bytes can describe any number of values. So what a file becomes is counted while it is read,
and refused beyond four times the file's size and 256 MB. An array is not counted whose shape the
file's own header says, where the file has its values.
"""

import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pipeline.foundation.files import regular
from pipeline.foundation.parts.errors import InputError, refusing

TIMES = 4
ALLOWED = 1 << 28
# How a file begins that gzip packed.
GZIP = b"\x1f\x8b"
# How a frame of LZ4 begins, in which ranx keeps JSON.
LZ4 = b"\x04\x22\x4d\x18"


def most(size: int) -> int:
    """The bytes that a file of so many may become."""
    return TIMES * size + ALLOWED


class Expansion:
    """Counts the bytes that a file becomes."""

    def __init__(self, path: Path, advice: str = "save the scores or vectors as .npy") -> None:
        self.path = path
        self.taken = 0
        self.advice = advice
        self.size = path.stat().st_size
        self.most = most(self.size)

    def take(self, size: int) -> None:
        """Count bytes before their memory is taken; InputError beyond the most."""
        self.taken += size
        self.require(self.taken)

    def require(self, size: int) -> None:
        """Refuse bytes beyond the most, which are not kept."""
        if size > self.most:
            raise InputError(
                f"{self.path}: its {self.size:,} bytes become more than {self.most:,} when they are "
                f"read; {self.advice}"
            )

    def texts(self, values: Sequence[str]) -> np.ndarray:
        """Make an array of texts, in which all take as much memory as the longest."""
        self.take(4 * len(values) * max(map(len, values), default=0))
        return np.array(values, dtype=np.str_)


class _Counted(io.RawIOBase):
    """What a packed file holds, counted while it is read."""

    def __init__(self, packed: BinaryIO, expansion: Expansion) -> None:
        self._packed = packed
        self._expansion = expansion

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            content = self._packed.read(len(buffer))
        except (EOFError, zlib.error) as error:
            raise OSError(f"what gzip packed is damaged or cut short: {error}") from None
        self._expansion.take(len(content))
        buffer[: len(content)] = content
        return len(content)


@contextmanager
def unpacked(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file, and unpack one that gzip or LZ4 packed; reading raises InputError beyond
    the most, and OSError if it is damaged.
    """
    with regular.opened(path) as file:
        if file.peek(len(LZ4))[: len(LZ4)] == LZ4:
            with _of_lz4(path, file) as packed:
                yield io.BufferedReader(_Counted(packed, Expansion(path)), 1 << 16)  # type: ignore[arg-type]
            return
        if file.peek(len(GZIP))[: len(GZIP)] != GZIP:
            yield file
            return
        with gzip.open(file) as packed:
            yield io.BufferedReader(_Counted(packed, Expansion(path)), 1 << 16)  # type: ignore[arg-type]


def _of_lz4(path: Path, file: BinaryIO) -> Any:
    """Open a file that LZ4 packed."""
    with refusing(
        ImportError,
        f"{path}: is packed by LZ4, which pyarrow unpacks: pip install pyarrow, or lz4 -d",
    ):
        import pyarrow as pa
    return pa.CompressedInputStream(file, "lz4")
