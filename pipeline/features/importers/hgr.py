"""HGR's features (Chen et al., CVPR 2020): of frames in HDF5 by name, or of whole clips in an array in lists' order.

    {trn,val,tst}_ft.hdf5  [T, D] by the clip's name with _ for /           (ordered_feature/SA/NAME)
    {trn,val,tst}_ft.npy   [clips, D], in the order of public_split's lists (ordered_feature/MP/NAME)
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np

from pipeline.features.importers.array_files import MOST_ITEMS, MOST_VALUES
from pipeline.features.importers.base import FeatureSource, OnFound, SourceItems, UnusableItems
from pipeline.manifest import Manifest
from pipeline.manifest.videos import FOLDER, SPLITS, names_of
from pipeline.parts.errors import InputError

Place = tuple[Path, str | int]
"""A file, and a key of an HDF5 file or a row of an array."""


@dataclass
class HgrSource(FeatureSource):
    """Indexed files of HGR."""

    places: dict[int, Place] = field(default_factory=dict)  # row of the manifest -> where its features stand

    def read(self, row: int) -> SourceItems:
        file, there = self.places[row]
        try:
            found = _hdf5(file, str(there)) if isinstance(there, str) else np.load(file, mmap_mode="r")[there][None]
            return SourceItems(np.ascontiguousarray(found, np.float32))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UnusableItems(f"not readable: {str(error).splitlines()[0][:200]}") from None

    def place(self, row: int) -> str:
        file, there = self.places[row]
        return f"{file}, {there!a}"


def index(paths: Sequence[Path], manifest: Manifest, on_found: OnFound) -> HgrSource:
    """Find the features of the manifest's clips."""
    source = HgrSource(np.zeros(len(manifest.images), np.int64), 0, [])
    row_of = {PurePosixPath(file).with_suffix("").as_posix(): row for row, file in enumerate(manifest.images["file"])}
    for folder in paths:
        found = [*_stacks(folder, row_of), *_arrays(folder, row_of)]
        if not found:
            raise InputError(f"{folder}: expected trn_ft.hdf5 or trn_ft.npy, of HGR, with clips of {manifest.dataset}")
        for row, where, shape in found:
            _take(source, row, where, shape)
            on_found(1)
    source.files = sorted({file for file, _ in source.places.values()})
    return source


def _take(source: HgrSource, row: int, where: Place, shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or not all(shape) or shape[0] > MOST_ITEMS or shape[1] > MOST_VALUES:
        source.faults[row] = f"{where[0]}, {where[1]!a}: expected features [T, D], got shape {shape}"
    elif source.dimension not in (0, shape[1]):
        source.faults[row] = f"{where[0]}, {where[1]!a}: expected {source.dimension} values a frame, got {shape[1]}"
    else:
        source.dimension, source.counts[row], source.places[row] = shape[1], shape[0], where


def _stacks(folder: Path, row_of: dict[str, int]) -> list[tuple[int, Place, tuple[int, ...]]]:
    """Row, place and shape of each clip of the manifest that the HDF5 files have."""
    by_key = {name.replace("/", "_"): row for name, row in row_of.items()}
    return [(by_key[key], (file, key), shape)
            for file in _there(folder, "hdf5") for key, shape in _shapes(file) if key in by_key]


def _shapes(file: Path) -> list[tuple[str, tuple[int, ...]]]:
    with _opened(file) as content:
        return [(key, _dataset(content, key).shape) for key in content]


def _hdf5(file: Path, key: str) -> np.ndarray:
    with _opened(file) as content:
        found: np.ndarray = _dataset(content, key)[...]
        return found


def _opened(file: Path):  # type: ignore[no-untyped-def]
    try:
        import h5py
    except ModuleNotFoundError:
        raise InputError("HGR's HDF5 files are read by h5py, which is not installed; pip install 'vse-pipeline[video]'"
                         ) from None
    try:
        return h5py.File(file, "r")
    except OSError as error:
        raise InputError(f"{file}: not a file in HDF5: {str(error).splitlines()[0][:200]}") from None


def _dataset(content, key: str):  # type: ignore[no-untyped-def]
    """A dataset that lies in this file: HDF5 can lead to other files."""
    import h5py

    if not isinstance(content.get(key, getlink=True), h5py.HardLink):
        raise InputError(f"{content.filename}: {key!a} is a link; expected the features themselves")
    found = content[key]
    if not isinstance(found, h5py.Dataset) or found.external or found.is_virtual:
        raise InputError(f"{content.filename}: {key!a} holds no features of its own")
    return found


def _arrays(folder: Path, row_of: dict[str, int]) -> list[tuple[int, Place, tuple[int, ...]]]:
    """As `_stacks`, of arrays with a row a clip."""
    found: list[tuple[int, Place, tuple[int, ...]]] = []
    for file in _there(folder, "npy"):
        try:
            array = np.load(file, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError):
            raise InputError(f"{file}: expected an array of numbers") from None
        names = names_of(_lists(folder) / f"{file.name.removesuffix('_ft.npy')}_names.npy")
        if array.ndim != 2 or len(array) != len(names):
            raise InputError(f"{file}: expected [{len(names)}, D], a row for each name of its list, got "
                             f"{list(array.shape)}")
        found += [(row_of[name], (file, place), (1, array.shape[1]))
                  for place, name in enumerate(names) if name in row_of]
    return found


def _there(folder: Path, suffix: str) -> list[Path]:
    return [file for short in SPLITS.values() if (file := folder / f"{short}_ft.{suffix}").is_file()]


def _lists(folder: Path) -> Path:
    """The nearest `public_split`, beside the features or above them."""
    near = [place / FOLDER for place in (folder, *folder.absolute().parents) if (place / FOLDER).is_dir()]
    if not near:
        raise InputError(f"{folder}: no folder {FOLDER} here or above, whose lists say which row is which clip")
    return near[0]
