"""TSV files of region features, as bottom-up-attention and LXMERT write them: one or several, rows in any order."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pipeline.features.extractors.butd.detector import EXTRAS
from pipeline.features.importers import ids, tsv_row
from pipeline.features.importers.base import FeatureSource, OnFound, SourceItems, UnusableItems
from pipeline.features.importers.tsv_file import RowPosition, TsvFile
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError


@dataclass
class TsvSource(FeatureSource):
    """One or several indexed TSV files.

    Attributes:
        columns: The columns of all files.
        places: Int64 [I, 4], the file, line, start and length of each image's row.
    """

    columns: tuple[str, ...] = ()
    places: np.ndarray = field(default_factory=lambda: np.empty((0, 4), np.int64))

    def read(self, row: int) -> SourceItems:
        number, _, start, length = (int(value) for value in self.places[row])
        with self.files[number].open("rb", buffering=0) as file:
            raw = os.pread(file.fileno(), length, start)
        return tsv_row.TsvRow.of(raw, self.columns).found(self.dimension)

    def place(self, row: int) -> str:
        return f"{self.files[self.places[row, 0]]}, line {self.places[row, 1]}"


def index(paths: Sequence[Path], manifest: Manifest, on_found: OnFound) -> TsvSource:
    """Find the row of each of the manifest's images in the files. Only offsets are kept."""
    scans = [TsvFile(path) for path in sorted(paths)]
    texts: list[str] = []
    places: list[tuple[int, RowPosition]] = []
    for number, scan in enumerate(scans):
        _check_alike(scans[0], scan)
        for text, place in scan.rows():
            texts.append(text)
            places.append((number, place))
            on_found(1)
    columns, images = scans[0].columns, len(manifest.images)
    beside = {name for column, (name, _, _) in tsv_row.EXTRAS.items() if column in columns}
    extras = {name: extra for name, extra in EXTRAS.items() if name in beside}
    source = TsvSource(np.zeros(images, np.int64), scans[0].dimension, [scan.path for scan in scans], extras,
                       columns=columns, places=np.full((images, 4), -1))
    rows = ids.rows_of(texts, manifest, source.files[0])
    for text, row, (number, place) in zip(texts, rows, places, strict=True):
        if row is not None:
            _take_up(source, row, text, number, place)
        elif not place.boxes:
            raise InputError(f"{source.files[number]}, line {place.line}: expected {len(columns)} columns that begin "
                             f"with an id of {manifest.dataset}, got {text[:40]!r}; mend or take out the row")
    surplus = rows.count(None)
    source.notes += [f"{surplus:,} of {len(rows):,} rows are of no image of {manifest.dataset}"] if surplus else []
    return source


def _check_alike(first: TsvFile, scan: TsvFile) -> None:
    if (scan.columns, scan.dimension) != (first.columns, first.dimension):
        raise InputError(f"{scan.path}, line 1: {len(scan.columns)} columns and {scan.dimension} values a box, but "
                         f"{first.path.name} has {len(first.columns)} and {first.dimension}; give one set of features")


def _take_up(source: TsvSource, row: int, text: str, number: int, place: RowPosition) -> None:
    if source.places[row, 0] >= 0:
        raise InputError(f"{source.files[number]}, line {place.line}: the image {text} stands in {source.place(row)} "
                         "too; take one of the rows out")
    source.places[row] = number, place.line, place.start, place.length
    source.counts[row] = place.boxes
    if not place.sound:
        try:
            source.read(row)
        except UnusableItems as error:
            source.faults[row], source.counts[row] = f"{source.place(row)}, id {text}: {error}", 0
