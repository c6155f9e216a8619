"""NumPy's files: an array, several by name, or Python's pickle of arrays in dicts and lists. No
code is run.
"""

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation import files
from pipeline.foundation.files import npy, regular
from pipeline.foundation.parts.errors import InputError, first_line, refusing
from pipeline.judge.systems.scores.foreign.arrays import (
    UNREADABLE,
    Array,
    Arrays,
    of_tree,
    stored_as,
)

# Bytes of an array of scores or vectors in a compressed archive; without compression it is mapped,
# whatever its size.
LARGEST = 1 << 32


def read_npy(path: Path) -> Arrays:
    """Map a `.npy` file. One that holds an object, such as a dict of VSE∞'s evaluation, is read as
    a pickle.
    """
    with refusing(ValueError, npy.damaged(path)):
        with regular.opened(path) as file:
            if npy.read_header(file).dtype.hasobject:
                content = files.restricted_pickle.load(path, in_npy=True)
                if isinstance(content, list) and len(content) == 1:
                    (content,) = content
                return of_tree("a NumPy file of objects", content, path)
        return Arrays("a NumPy array", {"": Array.of(npy.mapped(path))})


def read_pickle(path: Path) -> Arrays:
    """Read a pickle of arrays in plain containers."""
    return of_tree("a pickle of arrays", files.restricted_pickle.load(path), path)


def read_npz(path: Path) -> Arrays:
    """List the arrays of an `.npz`."""
    found: dict[str, Array] = {}
    with (
        refusing(
            Exception,  # bytes made to break the reader may raise anything
            lambda error: (
                f"{path}: is damaged, cut short or no .npz file ({first_line(error)}): write it with "
                "numpy.savez"
            ),
        ),
        regular.opened(path) as file,
    ):
        archive = files.npz.Arrays(file, LARGEST)
        for name in archive.members:
            header = archive.header(name)
            stored = stored_as(header.dtype)
            if header.dtype.hasobject:
                stored = UNREADABLE
            values = partial(_member, path, name, archive.mapped_at(name))
            found[name] = Array(header.shape, stored, values)
    if not found:
        raise InputError(f"{path}: is empty: holds no array")
    return Arrays("a NumPy archive", found)


def _member(path: Path, name: str, start: int | None) -> np.ndarray:
    """Read an array of an archive; map one that is not compressed."""
    with (
        refusing(
            Exception,
            lambda error: f"{path}: {first_line(error)}",
        ),
        regular.opened(path) as file,
    ):
        if start is None:
            return files.npz.Arrays(file, LARGEST).array(name)
        file.seek(start)
        header = npy.read_header(file)
        at = file.tell()
        if header.dtype.hasobject:
            raise ValueError(f"{name}: holds a pickle; save texts as numpy.array(texts, dtype=str)")
        size = os.fstat(file.fileno()).st_size
        if size < at + header.end - header.start:
            raise ValueError(f"{name}: is cut short")
    order: Any = "F" if header.by_columns else "C"
    if header.end == header.start:
        return np.empty(header.shape, header.dtype, order=order)
    return np.memmap(path, header.dtype, "r", at, header.shape, order=order)
