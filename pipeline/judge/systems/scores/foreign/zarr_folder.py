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

    inside = [
        folder
        for folder in sorted(path.iterdir())
        if any((folder / name).exists() for name in HEADERS)
    ]
    if inside and not (path / ".zarray").exists():
        return Arrays(
            "a zarr group",
            {folder.name: _array(folder, open_array(folder, "array")) for folder in inside},
        )
    if not any((path / name).exists() for name in HEADERS):
        return shards.read(path)
    return Arrays("a zarr array", {"": _array(path, open_array(path, "similarity matrix"))})


def _array(path: Path, array: Any) -> Array:
    return Array(
        tuple(array.shape),
        str(array.dtype.newbyteorder("=")),
        partial(layout.whole, path, array),
        array,
    )
