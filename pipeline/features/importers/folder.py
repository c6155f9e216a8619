"""A folder with one file of features for each image, named after it: `COCO_val2014_000000000042.npz`, `42.pth`."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pipeline.features.extractors.butd import EXTRAS
from pipeline.features.importers import array_files
from pipeline.features.importers.base import OnFound, Place, PlacedSource, rows_of
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError


def index(paths: Sequence[Path], manifest: Manifest, on_found: OnFound) -> PlacedSource:
    """Find the files of the manifest's images below the folders, and read their shapes."""
    files: list[tuple[str, Path]] = []  # an id is the path below the folder without suffix
    for folder in paths:
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder of features")
        files += [(file.relative_to(folder).with_suffix("").as_posix(), file) for file in sorted(folder.rglob("*"))
                  if file.suffix in array_files.READERS and not file.name.startswith(".") and file.is_file()]
    if not files:
        raise InputError(f"{', '.join(map(str, paths))}: expected files {', '.join(array_files.READERS)}, found none")
    rows = rows_of([name for name, _ in files], manifest, paths[0])
    file_of: dict[int, Path] = {}
    for (_, file), row in zip(files, rows, strict=True):
        if row in file_of:
            raise InputError(f"{file}: is of the image {manifest.images['file'][row]}, as is {file_of[row]}; take one "
                             "of them out")
        if row is not None:
            file_of[row] = file
    source = PlacedSource.empty(manifest, lambda place: array_files.load(place.file))
    for row in sorted(file_of):
        source.add(row, Place(file_of[row]), partial(_shape, source, file_of[row]))
        on_found(1)
    source.files = [file_of[row] for row in sorted(file_of)]
    source.count_others(rows, "files", manifest)
    return source


def _shape(source: PlacedSource, file: Path) -> tuple[int, ...]:
    """The shape of a file's features. The first readable file says what else the files hold."""
    shape = array_files.shape(file)
    if not source.dimension:
        beside = array_files.load(file).extras
        source.extras = {name: extra for name, extra in EXTRAS.items() if name in beside}
    return shape
