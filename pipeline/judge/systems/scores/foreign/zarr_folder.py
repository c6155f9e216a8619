"""A folder: a zarr array, the arrays of a zarr group, or shards."""

from functools import partial
from pathlib import Path
from typing import Any

from pipeline.judge.systems.scores import layout
from pipeline.judge.systems.scores.foreign import shards
from pipeline.judge.systems.scores.foreign.arrays import Array, Arrays

HEADERS = ("zarr.json", ".zarray")


def read(path: Path) -> Arrays:
    """Open the arrays of a folder; cells of a matrix are read in blocks."""
    from pipeline.foundation.files.zarr_arrays import open_array

    inside = [folder for folder in sorted(path.iterdir()) if _is_of_zarr(folder)]
    if inside and not (path / ".zarray").exists():
        arrays = {folder.name: _array(folder, open_array(folder, "array")) for folder in inside}
        return Arrays("a zarr group", arrays)
    if not _is_of_zarr(path):
        return shards.read(path)
    matrix = open_array(path, "similarity matrix")
    return Arrays("a zarr array", {"": _array(path, matrix)})


def _is_of_zarr(folder: Path) -> bool:
    return any((folder / name).exists() for name in HEADERS)


def _array(path: Path, array: Any) -> Array:
    stored = str(array.dtype.newbyteorder("="))
    return Array(tuple(array.shape), stored, partial(layout.whole, path, array), array)
