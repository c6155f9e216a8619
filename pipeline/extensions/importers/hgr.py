"""HGR's features (Chen et al., CVPR 2020): frames in HDF5 by clip's name, or whole clips in an
array in lists' order.

{trn,val,tst}_ft.hdf5  [T, D] by the clip's name with _ for /           (ordered_feature/SA/NAME)
{trn,val,tst}_ft.npy   [clips, D], in the order of public_split's lists (ordered_feature/MP/NAME)
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath

import numpy as np

from pipeline.extensions.importers.base import (
    FeatureSource,
    OnFound,
    Place,
    SourceItems,
    UnusableItems,
)
from pipeline.extensions.importers.folder import possible
from pipeline.foundation.files import npy, regular
from pipeline.foundation.files.npz import LARGEST
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.videos import FOLDER, SPLITS, names_of
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import InputError, refusing

# A clip's name, the place of its features, and their shape.
Found = tuple[str, Place, tuple[int, ...]]


def index(paths: Sequence[Path], manifest: Manifest, on_found: OnFound) -> FeatureSource:
    """Find the features of the manifest's clips."""
    source = FeatureSource(manifest, _read)
    row_of = {}
    for row, file in enumerate(manifest.images["file"]):
        row_of[PurePosixPath(file).with_suffix("").as_posix()] = row
    row_of_key = {name.replace("/", "_"): row for name, row in row_of.items()}
    for folder in paths:
        added = 0
        for suffix, rows, clips in (("hdf5", row_of_key, _stack), ("npy", row_of, _array)):
            files = [folder / f"{short}_ft.{suffix}" for short in SPLITS.values()]
            read = map(clips, filter(Path.is_file, files))
            for name, place, shape in chain.from_iterable(read):
                if name in rows:
                    source.add(rows[name], place, partial(possible, shape))
                    on_found(1)
                    added += 1
        if not added:
            raise InputError(
                f"{folder}: expected trn_ft.hdf5 or trn_ft.npy, of HGR, with clips of {manifest.dataset}"
            )
    files_used = {place.file for row, place in source.places.items() if row not in source.faults}
    source.files = sorted(files_used)
    return source


def _read(place: Place) -> SourceItems:
    with refusing(
        (OSError, ValueError, KeyError, TypeError),
        lambda error: f"not readable: {str(error).splitlines()[0][:200]}",
        UnusableItems,
    ):
        if isinstance(place.at, str):
            with _opened(place.file) as content:
                values = _dataset(content, place.at)[...]
        else:
            values = npy.mapped(place.file)[place.at][None]
        return SourceItems(np.ascontiguousarray(values, np.float32))


def _stack(file: Path) -> Iterator[Found]:
    with _opened(file) as content:
        yield from [
            (key, Place(file, ascii(key), key), _dataset(content, key).shape) for key in content
        ]


def _opened(file: Path):  # type: ignore[no-untyped-def]
    extras.require("video", "a file in HDF5", "h5py")
    import h5py

    with refusing(
        OSError, lambda error: f"{file}: not a file in HDF5: {str(error).splitlines()[0][:200]}"
    ):
        with regular.opened(file):  # refuses a special file
            pass
        return h5py.File(file, "r")


def _dataset(content, key: str):  # type: ignore[no-untyped-def]
    """A dataset of this file itself; links of HDF5, which can lead to other files, are refused."""
    import h5py

    if not isinstance(content.get(key, getlink=True), h5py.HardLink):
        raise InputError(f"{content.filename}: {key!a} is a link; expected the features themselves")
    dataset = content[key]
    is_whole = isinstance(dataset, h5py.Dataset) and dataset.shape is not None
    if not is_whole or dataset.external or dataset.is_virtual:
        raise InputError(f"{content.filename}: {key!a} holds no features of its own")
    if dataset.dtype.kind not in "fiu":
        raise InputError(
            f"{content.filename}: {key!a} holds values of the type {dataset.dtype}, expected floats"
        )
    # Values that were never written take no space in the file.
    if dataset.size * dataset.dtype.itemsize > LARGEST:
        raise InputError(
            f"{content.filename}: {key!a} has the shape {list(dataset.shape)}, more than the {LARGEST:,} "
            "bytes that a clip's features may have"
        )
    return dataset


def _array(file: Path) -> Iterator[Found]:
    """The clips of an array with a row for each clip, named by the nearest `public_split` beside or
    above it.
    """
    with refusing((OSError, ValueError), f"{file}: expected an array of numbers"):
        array = npy.mapped(file)
    names = names_of(_lists(file) / f"{file.name.removesuffix('_ft.npy')}_names.npy")
    if array.ndim != 2 or len(array) != len(names):
        raise InputError(
            f"{file}: expected [{len(names)}, D], a row for each name of its list, got "
            f"{list(array.shape)}"
        )
    for row, name in enumerate(names):
        yield name, Place(file, str(row), row), (1, array.shape[1])


def _lists(file: Path) -> Path:
    """The nearest `public_split` beside a file or above it."""
    for folder in (file.parent, *file.parent.absolute().parents):
        if (folder / FOLDER).is_dir():
            return folder / FOLDER
    raise InputError(
        f"{file.parent}: no folder {FOLDER} here or above, whose lists say which row is which clip"
    )
