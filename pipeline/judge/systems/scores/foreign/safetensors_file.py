"""Tensors in `.safetensors`, mapped without torch or the library: a length, JSON with types and
places, then bytes.
"""

import math
import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation.files import parsing, regular
from pipeline.foundation.parts.errors import InputError, first_line, refusing
from pipeline.judge.systems.scores.foreign.arrays import BFLOAT16, Array, Arrays, of_bfloat16
from pipeline.judge.systems.scores.foreign.opening import LENGTH, header_length

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
MOST_AXES, LARGEST_SHAPE = 32, 1 << 59  # of an array of NumPy
MOST_TENSORS = 20_000


def read(path: Path) -> Arrays:
    """List the tensors."""
    with refusing(
        Exception,
        lambda error: (
            f"{path}: is damaged, cut short or no .safetensors file ({first_line(error)}): write it "
            "with save_file again"
        ),
    ):
        with regular.opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            length = header_length(file.read(LENGTH + 1), size)
            if length is None or LENGTH + length > size:
                raise ValueError(f"its header has {length or 0:,} of {size:,} bytes")
            file.seek(LENGTH)
            listed = parsing.from_json(file.read(length))
        listed.pop("__metadata__", None)
        if len(listed) > MOST_TENSORS:
            raise ValueError(f"it holds {len(listed):,} tensors, more than {MOST_TENSORS:,}")
        _refuse_overlaps(listed, size - LENGTH - length)
        start = LENGTH + length
        tensors = {name: _tensor(path, name, entry, start) for name, entry in listed.items()}
    if not tensors:
        raise InputError(f"{path}: is empty: holds no tensor")
    return Arrays("safetensors", tensors)


def _refuse_overlaps(listed: dict[str, Any], size: int) -> None:
    """Refuse tensors that do not follow each other up to the end, as the library does."""
    end = 0
    for name, entry in sorted(listed.items(), key=lambda each: each[1]["data_offsets"]):
        first, last = entry["data_offsets"]
        if type(first) is not int or type(last) is not int or first != end or last < first:
            raise ValueError(f"{name} is at {first} to {last}, the tensors before it end at {end}")
        end = last
    if end != size:
        raise ValueError(f"its tensors have {end:,} of {size:,} bytes")


def _tensor(path: Path, name: str, entry: Any, start: int) -> Array:
    kind = entry["dtype"]
    shape = tuple(entry["shape"])
    first, last = entry["data_offsets"]
    if kind not in DTYPES:
        raise InputError(
            f"{path}: {name} is of {kind}, which is not read; save it as one of {', '.join(DTYPES)}"
        )
    dtype = np.dtype(DTYPES[kind])
    if not all(type(each) is int and each >= 0 for each in shape):
        raise ValueError(f"{name} has the shape {list(shape)[:MOST_AXES]}")
    if len(shape) > MOST_AXES or math.prod(max(1, each) for each in shape) > LARGEST_SHAPE:
        raise ValueError(f"{name} has {len(shape)} axes or more values than there can be")
    if last - first != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"{name}: {last - first:,} bytes instead of {list(shape)} of {kind}")
    is_bfloat16 = kind == "BF16"
    stored = BFLOAT16 if is_bfloat16 else str(dtype.newbyteorder("="))
    values = partial(_mapped, path, dtype, shape, start + first, is_bfloat16)
    return Array(shape, stored, values)


def _mapped(
    path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], start: int, is_bfloat16: bool
) -> np.ndarray:
    if 0 in shape:
        return np.empty(shape, dtype)
    values = np.memmap(path, dtype, "r", start, shape)
    if is_bfloat16:
        return of_bfloat16(values)
    return values
