"""A zarr array, or the arrays of a zarr group."""

from functools import partial
from pathlib import Path
from typing import Any

from pipeline.parts.errors import InputError
from pipeline.systems.scores import layout
from pipeline.systems.scores.foreign.arrays import Array, Arrays

HEADERS = ("zarr.json", ".zarray")


def read(path: Path) -> Arrays:
    """Open the arrays of a folder; cells of a matrix are read in blocks."""
    from pipeline.files.zarr_arrays import open_array

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
        raise InputError(f"{path}: is a folder, and no zarr array or store of scores")
    return Arrays("a zarr array", {"": _array(path, open_array(path, "similarity matrix"))})


def _array(path: Path, array: Any) -> Array:
    return Array(
        tuple(array.shape),
        str(array.dtype.newbyteorder("=")),
        partial(layout.whole, path, array),
        array,
    )
