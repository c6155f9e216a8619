"""A folder with one file of features for each image, named after it: `COCO_val2014_000000000042.npz`, `42.pth`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pipeline.features.extractors.butd.detector import EXTRAS
from pipeline.features.importers import array_files, ids
from pipeline.features.importers.base import FeatureSource, OnFound, SourceItems, UnusableItems
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError


@dataclass
class FolderSource(FeatureSource):
    """Indexed folders."""

    file_of: dict[int, Path] = field(default_factory=dict)  # row of the manifest -> file

    def read(self, row: int) -> SourceItems:
        return array_files.load(self.file_of[row])

    def place(self, row: int) -> str:
        return str(self.file_of[row])


def index(paths: Sequence[Path], manifest: Manifest, on_found: OnFound) -> FolderSource:
    """Find the files of the manifest's images below the folders, and read their shapes."""
    files = [file for folder in paths for file in _files(folder)]
    if not files:
        raise InputError(f"{', '.join(map(str, paths))}: expected files {', '.join(array_files.READERS)}, found none")
    rows = ids.rows_of([name for name, _ in files], manifest, paths[0])
    file_of: dict[int, Path] = {}
    for (_, file), row in zip(files, rows, strict=True):
        if row in file_of:
            raise InputError(f"{file}: is of the image {manifest.images['file'][row]}, as is {file_of[row]}; take one "
                             "of them out")
        if row is not None:
            file_of[row] = file
    source = FolderSource(np.zeros(len(manifest.images), np.int64), 0, [], file_of=file_of)
    for row in sorted(file_of):
        _look(source, row)
        on_found(1)
    source.files = [file_of[row] for row in sorted(file_of)]
    surplus = rows.count(None)
    source.notes += [f"{surplus:,} of {len(rows):,} files are of no image of {manifest.dataset}"] if surplus else []
    return source


def _files(folder: Path) -> list[tuple[str, Path]]:
    """Ids and files; an id is the path below the folder without suffix. Hidden files are not looked at."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of features")
    return [(file.relative_to(folder).with_suffix("").as_posix(), file) for file in sorted(folder.rglob("*"))
            if file.suffix in array_files.READERS and not file.name.startswith(".") and file.is_file()]


def _look(source: FolderSource, row: int) -> None:
    """Take over a file's shape. The first readable one says how many values an item has, and what else there is."""
    file = source.file_of[row]
    try:
        items, dimension = array_files.shape(file)
        if not source.dimension:
            beside = array_files.load(file).extras
            source.extras = {name: extra for name, extra in EXTRAS.items() if name in beside}
            source.dimension = dimension
        if dimension != source.dimension:
            raise UnusableItems(f"expected {source.dimension} values an item, as in the first file, got {dimension}")
    except UnusableItems as error:
        source.faults[row] = f"{file}: {error}"
    else:
        source.counts[row] = items
