"""Read pickles of numpy arrays in plain containers, and refuse all others.

Nothing that a pickle names is imported or called (see `pickled`): what it says of an array, its
shape, type and bytes, is checked and made an array here. Weights of old detectors (`*.pkl`) are
such files.
"""

import math
import os
import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation.files import npy, pickled, regular
from pipeline.foundation.files.expansion import Expansion
from pipeline.foundation.files.pickled import Call, Name, Outside
from pipeline.foundation.parts.errors import ANYTHING, first_line, refusing

CORES = ("numpy.core", "numpy._core")
DTYPE = Name("numpy", "dtype")
ENCODED = Name("_codecs", "encode")
# Classes of arrays that are read as plain ones.
CLASSES = {Name("numpy", name) for name in ("ndarray", "memmap", "matrix")}
BEGUN = {Name(f"{core}.multiarray", "_reconstruct") for core in CORES}
WHOLE = {Name(f"{core}.numeric", "_frombuffer") for core in CORES}
SCALARS = {Name(f"{core}.multiarray", "scalar") for core in CORES}
# How Python 3 writes bytes without content for Python 2.
NO_BYTES = {Name(module, "bytes") for module in ("builtins", "__builtin__")}
# What a pickle may name.
NAMES = {
    *(DTYPE, ENCODED, pickled.ORDERED),
    *(CLASSES | BEGUN | WHOLE | SCALARS | NO_BYTES | pickled.SETS),
}
TYPES = re.compile("b1|[iu][1248]|f[248]|f16|c8|c16|O8?")
# How a name of another library begins -> what is held, and what to do.
OTHERS = {
    "pandas.": ("is a pickle of pandas", "save df.to_numpy() with numpy.save"),
    "numpy.ma.": ("holds a masked array", "save its .filled(VALUE) with numpy.save"),
    "scipy.": ("holds a sparse matrix of scipy", "save its .toarray() with numpy.save"),
    "torch.": ("is a plain pickle of torch's tensors", "save them with torch.save"),
    "polars.": ("is a pickle of polars", "save df.to_numpy() with numpy.save"),
    "jax": ("holds arrays of jax", "save numpy.asarray of each"),
    "tensorflow.": ("holds tensors of tensorflow", "save each .numpy()"),
    "xarray.": ("is a pickle of xarray", "save its .values with numpy.save"),
}
# Modules whose functions no data need.
RUNNING = {
    *("builtins", "__builtin__", "os", "posix", "nt", "sys", "io", "subprocess", "shutil"),
    *("importlib", "runpy", "pickle", "ctypes", "socket", "operator", "functools", "webbrowser"),
}


def load(path: Path, *, in_npy: bool = False) -> Any:
    """Read a pickle of dicts, lists, tuples, sets, strings, numbers and numpy arrays; InputError
    for anything else.

    in_npy: whether it follows an array's header, as `numpy.save` writes a dict. An array of objects
        becomes a list.
    """
    with (
        reading(path, "a pickle of arrays"),
        regular.opened(path) as file,
    ):
        if in_npy:
            npy.read_header(file)
        size = os.fstat(file.fileno()).st_size
        return arrays(pickled.read(file, size, Expansion(path), NAMES).tree)


def reading(path: Path, what: str) -> AbstractContextManager[None]:
    """Raise an InputError, of one line, if the block cannot read a pickle in a file."""

    def why(error: Exception) -> str:
        if isinstance(error, pickled.ForeignName):
            return f"{path}: {foreign(error.name)}"
        if isinstance(error, OSError):
            return f"cannot read {path}: {error.strerror or error}"
        said = type(error).__name__
        if type(error) in (ValueError, EOFError):
            said = first_line(error)
        return f"{path}: is damaged, cut short or not {what} ({said})"

    return refusing(ANYTHING, why)


def foreign(name: Name, alone: str = "save the arrays alone with numpy.save") -> str:
    """Say what a file is that names what is not read. alone: how what is read is saved."""
    for begin, (what, advice) in OTHERS.items():
        if name.module.startswith(begin) or f"{name.module}." == begin:
            return f"{what} ({name}): {advice}"
    if name.module.partition(".")[0] in RUNNING:
        return f"it names {name}, which no array needs; do not trust it"
    return f"holds {name}, and not only arrays in dicts and lists; it is not unpickled: {alone}"


def arrays(tree: Any) -> Any:
    """What a pickle says, with its arrays; ValueError for what is no array in plain containers."""
    return _value(tree, {})


def _value(value: Any, made: dict[int, Any]) -> Any:
    """Make a value once, however often it is referred to. made: a value's id -> what was made."""
    if not isinstance(value, pickled.CONTAINERS | Name):
        return value
    if id(value) not in made:
        made[id(value)] = _made(value, made)
    return made[id(value)]


def _made(value: Any, made: dict[int, Any]) -> Any:
    if isinstance(value, Call):
        return _called(value, made)
    if isinstance(value, dict):
        return {_value(key, made): _value(item, made) for key, item in value.items()}
    if isinstance(value, Name):
        raise ValueError(f"it holds {value} itself")
    if isinstance(value, Outside):
        raise ValueError("it holds values that are in no pickle")
    items = [_value(item, made) for item in value]
    return items if isinstance(value, list) else type(value)(items)


def _called(call: Call, made: dict[int, Any]) -> Any:
    """The array, number or bytes that a call would make."""
    if call.name in BEGUN:
        return _stated(call, made)
    if call.name in WHOLE:
        raw, dtype, shape, order = call.arguments
        return _array(_bytes(raw), _dtype(dtype), shape, order == "F")
    if call.name in SCALARS:
        dtype, raw = call.arguments
        return _array(_bytes(raw), _dtype(dtype), (), False)[()]
    if call.name == ENCODED or call.name in NO_BYTES:
        return _bytes(call)
    if call.name == DTYPE:
        raise ValueError("it holds a dtype without an array")
    raise ValueError(f"it calls {call.name}, which no saved array does")


def _stated(call: Call, made: dict[int, Any]) -> Any:
    """An array that was begun without values, and then given its shape, type, order and values."""
    if type(call.state) is not tuple or len(call.state) != 5:
        raise ValueError("it holds an array without values")
    if call.arguments[0] not in CLASSES:
        raise ValueError("it holds an array without values")
    _, shape, dtype, by_columns, values = call.state
    if _dtype(dtype).kind != "O":
        return _array(_bytes(values), _dtype(dtype), shape, bool(by_columns))
    if type(values) is not list or len(values) != _size(shape):
        raise ValueError("it holds an array of other values than its shape has")
    objects = [_value(value, made) for value in values]
    are_numbers = all(type(value) in (int, float) for value in objects)
    if len(shape) < 2 or not are_numbers:
        return objects
    return np.array(objects).reshape(shape, order="F" if by_columns else "C")


def _array(raw: bytes, dtype: np.dtype[Any], shape: Any, by_columns: bool) -> np.ndarray:
    if dtype.kind != "O" and len(raw) == _size(shape) * dtype.itemsize:
        return np.ndarray(shape, dtype, raw, order="F" if by_columns else "C")
    raise ValueError(f"{len(raw):,} bytes instead of an array {shape!r:.80} of {dtype}")


def _size(shape: Any) -> int:
    """How many values a shape has."""
    if not are_sizes(shape):
        raise ValueError(f"an array has the shape {shape!r:.80}")
    return math.prod(shape)


def are_sizes(values: Any) -> bool:
    """Whether this is a tuple of whole numbers from 0 up, as a shape is."""
    if type(values) is not tuple:
        return False
    return all(type(value) is int and value >= 0 for value in values)


def _dtype(call: Any) -> np.dtype[Any]:
    """A type of numbers, or of objects, with its order of bytes."""
    if not isinstance(call, Call) or call.name != DTYPE:
        raise ValueError("it holds an array without a dtype")
    name = call.arguments[0]
    if type(name) is not str:
        raise ValueError("it holds an array without a dtype")
    if not TYPES.fullmatch(name.lstrip("<>=|")):
        raise ValueError(f"it holds an array of dtype {name!a:.40}, expected numbers")
    dtype = np.dtype(name)
    order: Any = "="
    if type(call.state) is tuple and len(call.state) > 1:
        order = call.state[1]
    if order in ("<", ">"):
        return dtype.newbyteorder(order)
    return dtype


def _bytes(value: Any) -> bytes:
    """Bytes as any Python wrote them: Python 2 as text, Python 3 for it as text to be encoded."""
    if isinstance(value, Call) and value.name == ENCODED and value.arguments[1:] == ("latin1",):
        value = value.arguments[0]
    elif isinstance(value, Call) and value.name in NO_BYTES and not value.arguments:
        value = b""
    if isinstance(value, str):
        return value.encode("latin1")
    if type(value) is not bytes:
        raise ValueError("it holds an array without bytes")
    return value
