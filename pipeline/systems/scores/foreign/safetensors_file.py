"""Tensors in `.safetensors`, mapped without torch or the library: a length, JSON with types and
places, then bytes.
"""

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.files import parsing, regular
from pipeline.parts.errors import InputError, refusing
from pipeline.systems.scores.foreign.arrays import BFLOAT16, Array, Arrays, of_bfloat16

DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "u1",
    "BOOL": "?",
}
LENGTH, LONGEST_HEADER = 8, 100_000_000  # bytes; the library's own limit


def header_length(start: bytes, size: int) -> int | None:
    """The length of the header of a file that begins so and has so many bytes; None if it is no
    such file.
    """
    length = int.from_bytes(start[:LENGTH], "little")
    return (
        length
        if start[LENGTH : LENGTH + 1] == b"{" and length <= LONGEST_HEADER and length < 1 << 40
        else None
    )


def read(path: Path) -> Arrays:
    """List the tensors."""
    with refusing(
        (OSError, ValueError, KeyError, TypeError, AttributeError),
        lambda error: (
            f"{path}: is damaged, cut short or no .safetensors file ({error}): write it with save_file again"
        ),
    ):
        with regular.opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            length = header_length(file.read(LENGTH + 1), size)
            if length is None or LENGTH + length > size:
                raise ValueError(f"its header has {length or 0:,} of {size:,} bytes")
            file.seek(LENGTH)
            listed = parsing.from_json(file.read(length))
        found = {
            name: _tensor(path, name, entry, LENGTH + length, size)
            for name, entry in listed.items()
            if name != "__metadata__"
        }
    if not found:
        raise InputError(f"{path}: is empty: holds no tensor")
    return Arrays("safetensors", found)


def _tensor(path: Path, name: str, entry: Any, start: int, size: int) -> Array:
    kind, shape, (first, last) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    if kind not in DTYPES:
        raise InputError(
            f"{path}: {name} is of {kind}, which is not read; save it as one of {', '.join(DTYPES)}"
        )
    dtype = np.dtype(DTYPES[kind])
    if not all(type(each) is int and each >= 0 for each in (*shape, first, last)):
        raise ValueError(f"{name} has the shape {list(shape)} at {first}")
    if last - first != int(np.prod(shape, dtype=object)) * dtype.itemsize or start + last > size:
        raise ValueError(f"{name}: {size - start - first:,} bytes instead of {last - first:,}")
    stored = BFLOAT16 if kind == "BF16" else str(dtype.newbyteorder("="))
    return Array(shape, stored, partial(_mapped, path, dtype, shape, start + first, kind == "BF16"))


def _mapped(
    path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], start: int, is_bfloat16: bool
) -> np.ndarray:
    if 0 in shape:
        return np.empty(shape, dtype)
    values = np.memmap(path, dtype, "r", start, shape)
    return of_bfloat16(values) if is_bfloat16 else values
