"""Pickle objects for workers. Arrays that are mapped from files are sent as paths, which all
workers must see.
"""

import io
import mmap
import os
import pickle
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.foundation.parts.errors import InputError


def packed(value: object) -> bytes | None:
    """Pickle an object; None if it has a float matrix or a zarr array that is only in memory, or a
    nested function.
    """
    from zarr.abc.store import Store
    from zarr.storage import LocalStore

    class Pickler(pickle.Pickler):
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, LocalStore):
                return _store, (obj.root.absolute(), written_at(obj.root))
            is_matrix = False
            if isinstance(obj, np.ndarray):
                mapped = _mapped(obj)
                if mapped is not None:
                    return _map, mapped
                is_matrix = obj.ndim == 2 and obj.dtype.kind == "f"
            if is_matrix or isinstance(obj, Store):
                raise pickle.PicklingError(f"{type(obj).__name__} in memory")
            return NotImplemented

    content = io.BytesIO()
    try:
        Pickler(content).dump(value)
    except (pickle.PicklingError, AttributeError):  # the latter for a function within a function
        return None
    return content.getvalue()


@lru_cache(maxsize=1)
def unpacked(content: bytes) -> Any:
    """Read what `packed` wrote, once for all tasks of one object. InputError for a file that was
    written since.
    """
    return pickle.loads(content)


def _mapped(
    values: npt.NDArray[Any],
) -> tuple[str, int | None, str, tuple[int, ...], int, tuple[int, ...]] | None:
    """The part of a file that holds an array's values; None for an array in memory."""
    whole: Any = values
    while isinstance(whole, np.ndarray) and not isinstance(whole.base, mmap.mmap):
        whole = whole.base
    if not isinstance(whole, np.memmap) or whole.filename is None:
        return None
    first, of_whole = (each.__array_interface__["data"][0] for each in (values, whole))
    with suppress(OSError):
        if getattr(whole, "inode", None) not in (
            None,
            os.stat(whole.filename).st_ino,
        ):  # see `open_npy`
            raise _unseen(whole.filename)
    return (
        str(whole.filename),
        written_at(whole.filename),
        values.dtype.str,
        values.shape,
        whole.offset + first - of_whole,
        values.strides,
    )


def written_at(path: str | Path) -> int | None:
    """Tell when a file or folder was last written, in nanoseconds; None if it is not there."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


def _map(
    path: str,
    written: int | None,
    dtype: str,
    shape: tuple[int, ...],
    offset: int,
    strides: tuple[int, ...],
) -> npt.NDArray[Any]:
    try:
        mapped = np.ndarray(shape, dtype, np.memmap(path, np.uint8, "r"), offset, strides)
    except (OSError, ValueError, TypeError):
        raise _unseen(path) from None
    refuse_replaced(Path(path), written)
    return mapped


def _store(root: Path, written: int | None) -> Any:
    from zarr.storage import LocalStore

    refuse_replaced(root, written)
    return LocalStore(root, read_only=True)


def refuse_replaced(path: Path, written: int | None) -> None:
    """Refuse a file or folder that is not there, or that was not written when `written_at` said."""
    if written is None or written_at(path) != written:
        raise _unseen(path)


def _unseen(path: object) -> InputError:
    return InputError(
        f"{path}: is missing or another file, though this run reads it; all workers must see the "
        "same files under the same paths"
    )
