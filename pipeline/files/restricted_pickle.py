"""Read pickles of numpy arrays in plain containers, and refuse all others.

A pickle is a program: it may name any function and have it called. Here it may only use the names
that numpy writes for an array, and these are bound to the few functions below, which copy bytes. No
function that the file names is ever called. Weights of old detectors (`*.pkl`) are such files.
"""

import pickle
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.files import npy, regular
from pipeline.parts.errors import ANYTHING, refusing


def load(
    path: Path, names: Mapping[tuple[str, str], Any] | None = None, *, in_npy: bool = False
) -> Any:
    """Read a pickle of dicts, lists, tuples, strings, numbers and numpy arrays; InputError for
    anything else.

    names: what the pickle may name instead of what arrays need: module and name -> what is taken
        for it. in_npy: whether it follows an array's header, as `numpy.save` writes a dict. An
        array of objects becomes a list.
    """
    with (
        refusing(
            ANYTHING,
            lambda error: f"{path}: not readable as a pickle of arrays ({type(error).__name__})",
        ),
        refusing(pickle.UnpicklingError, lambda error: f"{path}: not read: {error}"),
        regular.opened(path) as file,
    ):
        if in_npy:
            npy.read_header(file)
        return plain(_Unpickler(file, names=names or NAMES, encoding="latin1").load())


class _DType:
    """What numpy writes for a dtype: its kind and size ("f4"), then its byte order."""

    def __init__(self, name: str, *_: Any) -> None:
        self.dtype = np.dtype(name)
        if self.dtype.kind not in "biufcO":
            raise pickle.UnpicklingError(
                f"it holds an array of dtype {self.dtype}, expected numbers"
            )

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if state[1] in ("<", ">"):
            self.dtype = self.dtype.newbyteorder(state[1])


class _Array:
    """What numpy writes for an array: an empty one, then its shape, dtype, order and bytes."""

    array: np.ndarray | list[Any]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, raw = state
        if dtype.dtype.kind == "O":
            self.array = list(raw)
            return
        data = np.frombuffer(_bytes(raw), dtype.dtype)
        self.array = data.reshape(shape, order="F" if fortran else "C")


def _bytes(raw: bytes | str) -> bytes:
    return raw.encode("latin1") if isinstance(raw, str) else raw  # Python 2 wrote bytes as str


def _encode(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"it encodes bytes as {encoding!r}, expected latin1")
    return text.encode("latin1")


def _refuse_call(*_: Any) -> None:
    raise pickle.UnpicklingError("it calls numpy.ndarray, which no saved array does")


NAMES = {
    ("collections", "OrderedDict"): OrderedDict,
    ("_codecs", "encode"): _encode,
    ("__builtin__", "bytes"): lambda: (
        b""
    ),  # how Python 3 writes the bytes of an empty array for Python 2
    ("numpy", "dtype"): _DType,
    ("numpy", "ndarray"): _refuse_call,  # named as an argument, never called
    **{
        (f"numpy.{core}.multiarray", name): made
        for core in ("core", "_core")
        for name, made in (
            ("_reconstruct", lambda *_: _Array()),
            ("scalar", lambda dtype, raw: np.frombuffer(_bytes(raw), dtype.dtype, count=1)[0]),
        )
    },
}


class _Unpickler(pickle.Unpickler):
    def __init__(self, *given: Any, names: Mapping[tuple[str, str], Any], **options: Any) -> None:
        super().__init__(*given, **options)
        self.names = names

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.names:
            what = "no array needs" if self.names is NAMES else "it does not need"
            raise pickle.UnpicklingError(f"it names {module}.{name}, which {what}; do not trust it")
        return self.names[module, name]


def plain(value: Any) -> Any:
    """`value` with the stand-ins replaced by the arrays they hold."""
    if isinstance(value, _Array):
        return plain(value.array)
    if isinstance(value, _DType):
        raise pickle.UnpicklingError("it holds a dtype without an array")
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(item) for item in value)
    return value
