"""Arrays in `.npy` files that may be hostile: nothing is unpickled, and sizes are checked before
memory is taken.
"""

import io
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.foundation.files import regular

# Bytes of a header; numpy parses no longer one either.
LONGEST = 10_000
# How an array begins, in each version -> digits of its header's length.
DIGITS = {np.lib.format.magic(1, 0): 2, np.lib.format.magic(2, 0): 4, np.lib.format.magic(3, 0): 4}
# Bytes of a header with its length, in any version, before its text.
PREFIX = np.lib.format.MAGIC_LEN + 4


class Header(NamedTuple):
    """The header of an array: what precedes its values."""

    shape: tuple[int, ...]
    by_columns: bool  # in Fortran's order
    dtype: np.dtype[Any]
    start: int  # where the values begin, in bytes

    @property
    def end(self) -> int:
        """Where they end, in bytes."""
        return self.start + math.prod(self.shape) * self.dtype.itemsize


def length(content: bytes | bytearray) -> int:
    """Count the bytes before an array's values, from at least the first `PREFIX`; ValueError if no
    array begins so.
    """
    begin = bytes(content[: np.lib.format.MAGIC_LEN])
    if begin not in DIGITS:
        raise ValueError(
            "expected an array of format 1.0, 2.0 or 3.0"
            + (f", got {begin[-2]}.{begin[-1]}" if begin[:-2] == np.lib.format.MAGIC_PREFIX else "")
        )
    digits = DIGITS[begin]
    declared = int.from_bytes(content[8 : 8 + digits], "little")
    if not 4 <= declared <= LONGEST:
        raise ValueError(
            f"the header of an array declares {declared:,} bytes, expected 4 to {LONGEST:,}"
        )
    return np.lib.format.MAGIC_LEN + digits + declared


def parse(content: bytes) -> Header:
    """Parse the bytes before the values; ValueError if damaged, for a negative size, or values
    without a size.
    """
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    try:
        shape, by_columns, dtype = read(stream)
    except (
        Exception
    ) as error:  # Python's parser raises many kinds on text that it cannot parse, MemoryError too
        raise ValueError(f"the header of an array is damaged ({type(error).__name__})") from None
    if any(isinstance(size, bool) or size < 0 for size in shape):
        raise ValueError(f"an array has the shape {list(shape)}")
    if not dtype.itemsize:
        raise ValueError(f"an array of {dtype} has no values")
    return Header(shape, by_columns, dtype, len(content))


def read_header(file: BinaryIO) -> Header:
    """Read the header of an open file at its start, which is at the values afterwards; ValueError
    as for `parse`.
    """
    first = file.read(PREFIX)
    size = length(first)
    if size < PREFIX:
        return parse(first[:size])
    return parse(first + file.read(size - PREFIX))


def holds_matrix(path: Path) -> bool:
    """Whether a file is an array of rows and columns, several of each, of numbers that are
    ranked.
    """
    with regular.opened(path) as file:
        try:
            header = read_header(file)
        except ValueError:
            return False
    is_table = len(header.shape) == 2 and min(header.shape) > 1
    return is_table and header.dtype.kind in "fiu" and header.dtype.itemsize <= 8


def damaged(path: Path) -> Callable[[BaseException], str]:
    """What is said of a file that a user names and `mapped` cannot read."""
    return lambda error: (
        f"{path}: is damaged, cut short or no .npy file of numbers ({error}): "
        "write it with numpy.save"
    )


def mapped(path: Path) -> npt.NDArray[Any]:
    """Map a `.npy` file into memory, read-only; it may be larger than the memory."""
    with regular.opened(path) as file:
        header = read_header(file)
        size = os.fstat(file.fileno()).st_size
    if header.dtype.hasobject:
        raise ValueError("it holds Python objects")
    if size < header.end:
        raise ValueError(f"{size:,} bytes instead of {header.end:,}")
    order: Any = "F" if header.by_columns else "C"
    if header.end == header.start:
        return np.empty(header.shape, header.dtype, order=order)
    # Read-only, because a writable map that is larger than the memory is refused.
    return np.memmap(path, header.dtype, "r", header.start, header.shape, order=order)
