"""How much the content of a file may become: packed text, repeated references, rows of numbers.

A few bytes can describe any number of values. So what a file becomes is counted while it is read,
and refused beyond four times the file's size and 256 MB. An array is not counted whose shape the
file's own header says, where the file has its values.
"""

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pipeline.files import regular
from pipeline.parts.errors import InputError

TIMES, ALLOWED = 4, 1 << 28
# How a file begins that gzip packed.
GZIP = b"\x1f\x8b"


def most(size: int) -> int:
    """The bytes that a file of so many may become."""
    return TIMES * size + ALLOWED


class Expansion:
    """Counts the bytes that a file becomes."""

    def __init__(self, path: Path) -> None:
        self.path, self.taken = path, 0
        self.size = path.stat().st_size
        self.most = most(self.size)

    def take(self, size: int) -> None:
        """Count bytes before their memory is taken; InputError beyond the most."""
        self.taken += size
        if self.taken > self.most:
            raise InputError(
                f"{self.path}: its {self.size:,} bytes become more than {self.most:,} when they are "
                "read; save the scores or vectors as .npy"
            )


class _Counted(io.RawIOBase):
    """What a packed file holds, counted while it is read."""

    def __init__(self, packed: BinaryIO, expansion: Expansion) -> None:
        self._packed, self._expansion = packed, expansion

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        content = self._packed.read(len(buffer))
        self._expansion.take(len(content))
        buffer[: len(content)] = content
        return len(content)


@contextmanager
def unpacked(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file, and unpack one that gzip packed; reading raises InputError beyond the
    most.
    """
    with regular.opened(path) as file:
        if file.peek(len(GZIP))[: len(GZIP)] != GZIP:
            yield file
            return
        with gzip.open(file) as packed:
            yield io.BufferedReader(_Counted(packed, Expansion(path)), 1 << 16)  # type: ignore[arg-type]
