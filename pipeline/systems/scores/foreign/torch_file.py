"""Tensors that `torch.save` wrote, read without torch.

The file is a zip archive: a pickle `data.pkl`, which names storages, and their bytes in `data/KEY`.
A pickle is a program; here it may only use the names that tensors in plain containers need, bound
to the functions below, as in `files.restricted_pickle`.
"""

import math
import pickle
import zipfile
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from pipeline.files import npz, regular, restricted_pickle
from pipeline.parts.errors import ANYTHING, InputError, first_line, refusing
from pipeline.systems.scores.foreign.arrays import BFLOAT16, Array, Arrays, of_bfloat16, of_tree

# Kind of a storage -> how its values are stored.
STORAGES = {
    "DoubleStorage": "f8",
    "FloatStorage": "f4",
    "HalfStorage": "f2",
    "BFloat16Storage": BFLOAT16,
    "LongStorage": "i8",
    "IntStorage": "i4",
    "ShortStorage": "i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
    "BoolStorage": "?",
}
LARGEST_PICKLE = 1 << 28  # bytes of data.pkl
# How a file of torch before 1.6 begins, a pickle of a number.
LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."


def is_archive(file: BinaryIO) -> bool:
    """Whether a zip archive is of `torch.save`."""
    return any(name.endswith("data.pkl") for name in zipfile.ZipFile(file).namelist())


def read(path: Path) -> Arrays:
    """List the tensors in plain containers."""
    with (
        refusing(
            ANYTHING,
            lambda error: (
                f"{path}: is damaged, cut short or no file of torch.save ({first_line(error)})"
            ),
        ),
        refusing(pickle.UnpicklingError, lambda error: f"{path}: {first_line(error)}"),
        regular.opened(path) as file,
    ):
        tree = _tree(path, zipfile.ZipFile(file), npz.Arrays(file))
    return of_tree("a file of torch", restricted_pickle.plain(tree), path)


def _tree(path: Path, archive: zipfile.ZipFile, storages: npz.Arrays) -> Any:
    (pickled,) = (info for info in archive.infolist() if info.filename.endswith("data.pkl"))
    if pickled.file_size > LARGEST_PICKLE:
        raise ValueError(f"data.pkl declares {pickled.file_size:,} bytes")
    folder = pickled.filename.removesuffix("data.pkl")
    if (
        f"{folder}byteorder" in archive.namelist()
        and archive.read(f"{folder}byteorder") != b"little"
    ):
        raise InputError(
            f"{path}: was saved on a machine of another byte order; save its arrays with numpy"
        )
    with archive.open(pickled) as content:
        return _Unpickler(content, path, storages, folder).load()


class _Storage(NamedTuple):
    """Where values of one type are in the file."""

    stored: str
    start: int
    values: int


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: Any, path: Path, storages: npz.Arrays, folder: str) -> None:
        super().__init__(content, encoding="utf-8")
        self._path, self._storages, self._folder = path, storages, folder

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in STORAGES:
            return STORAGES[name]
        if (module, name) in (
            ("torch._utils", "_rebuild_tensor_v2"),
            ("torch._utils", "_rebuild_tensor"),
        ):
            return partial(_tensor, self._path)
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return lambda tensor, *more: tensor
        if (module, name) == ("torch", "Size"):
            return tuple
        if (module, name) in restricted_pickle.NAMES:
            return restricted_pickle.NAMES[module, name]
        raise pickle.UnpicklingError(
            f"holds {module}.{name}, and not only tensors in dicts and lists; it is not "
            "unpickled: save the scores alone, torch.save({'sims': sims}, FILE)"
        )

    def persistent_load(self, pid: Any) -> _Storage:
        kind, stored, key, _, count = pid
        if kind != "storage" or not isinstance(stored, str):
            raise pickle.UnpicklingError(f"names {str(pid)[:80]!a}, expected a storage of tensors")
        start, size = self._storages.stored_at(f"{self._folder}data/{key}")
        itemsize = 2 if stored == BFLOAT16 else np.dtype(stored).itemsize
        if type(count) is not int or count * itemsize > size:
            raise ValueError(f"storage {key}: {size:,} bytes instead of {count} x {itemsize}")
        return _Storage(stored, start, count)


def _tensor(
    path: Path,
    storage: _Storage,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    *_: Any,
) -> Array:
    """An array of some of a storage's values."""
    if len(shape) != len(strides) or not all(
        type(each) is int and each >= 0 for each in (offset, *shape, *strides)
    ):
        raise ValueError(f"a tensor has the shape {list(shape)} with strides {list(strides)}")
    last = offset + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
    if (
        0 not in shape and max(last + 1, math.prod(shape)) > storage.values
    ):  # expanded ones have fewer values
        raise ValueError(
            f"a tensor {list(shape)} is larger than its storage of {storage.values:,} values: save its "
            ".contiguous()"
        )
    stored = storage.stored if storage.stored == BFLOAT16 else str(np.dtype(storage.stored))

    def values() -> np.ndarray:
        dtype = np.dtype("<u2" if storage.stored == BFLOAT16 else storage.stored).newbyteorder("<")
        if 0 in shape:
            return np.empty(shape, dtype)
        whole = np.memmap(path, dtype, "r", storage.start, (storage.values,))
        part = np.lib.stride_tricks.as_strided(
            whole[offset:], shape, [step * dtype.itemsize for step in strides], writeable=False
        )
        return of_bfloat16(part) if storage.stored == BFLOAT16 else part

    return Array(tuple(shape), stored, values)
