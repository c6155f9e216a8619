"""TSV files of region features, as bottom-up-attention and LXMERT write them: one or several, rows in any order.

A row has plain text fields, and arrays in base64. The index reads the head of a row and skips its features, so that it
reads about a hundredth of a file. Where the computed length does not lead to the end of a row, the row is read
completely and marked for examination.
"""

from __future__ import annotations

import binascii
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import pybase64

from pipeline.features.extractors import butd
from pipeline.features.importers.base import FeatureSource, OnFound, Place, SourceItems, UnusableItems, rows_of
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError, refusing

# peteanderson80/bottom-up-attention, tools/generate_tsv.py, and LXMERT (airsplay/lxmert), whose arrays of objects and
# attributes stand before num_boxes. Neither writes a header.
ANDERSON = ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features")
LXMERT = ("img_id", "img_h", "img_w", "objects_id", "objects_conf", "attrs_id", "attrs_conf", "num_boxes", "boxes",
          "features")
COLUMNS = {len(columns): columns for columns in (ANDERSON, LXMERT)}
# Column -> (what the BUTD engines call it, its dtype in the file, values an item).
EXTRAS = {"boxes": ("boxes", "<f4", 4), "objects_id": ("object", "<i8", 1), "objects_conf": ("object_score", "<f4", 1),
          "attrs_id": ("attribute", "<i8", 1), "attrs_conf": ("attribute_score", "<f4", 1)}
HEAD = 1 << 13  # bytes; what stands before the boxes fits for some 250 of them
LONGEST = 1 << 26  # bytes of a row
COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")


def index(paths: Sequence[Path], manifest: Manifest, on_found: OnFound) -> FeatureSource:
    """Find the row of each of the manifest's images in the files. Only offsets are kept."""
    files = [TsvFile(path) for path in sorted(paths)]
    columns, dimension = files[0].columns, files[0].dimension
    texts: list[str] = []
    positions: list[tuple[Path, RowPosition]] = []
    for file in files:
        if (file.columns, file.dimension) != (columns, dimension):
            raise InputError(f"{file.path}, line 1: {len(file.columns)} columns and {file.dimension} values a box, but "
                             f"{files[0].path.name} has {len(columns)} and {dimension}; give one set of features")
        for text, position in file.rows():
            texts.append(text)
            positions.append((file.path, position))
            on_found(1)

    def read(place: Place) -> SourceItems:
        with place.file.open("rb", buffering=0) as file:
            raw = os.pread(file.fileno(), place.at.length, place.at.start)
        return TsvRow.of(raw, columns).decoded(dimension)

    source = FeatureSource.empty(manifest, read)
    source.dimension, source.files = dimension, [file.path for file in files]
    beside = {name for column, (name, _, _) in EXTRAS.items() if column in columns}
    source.extras = {name: extra for name, extra in butd.EXTRAS.items() if name in beside}
    rows = rows_of(texts, manifest, source.files[0])
    for text, row, (path, position) in zip(texts, rows, positions, strict=True):
        place = Place(path, f"line {position.line}", position)
        if row is not None:
            _add(source, row, text, place)
        elif not position.boxes:
            raise InputError(f"{place}: expected {len(columns)} columns that begin with an id of {manifest.dataset}, "
                             f"got {text[:40]!r}; correct or remove the row")
    source.count_others(rows, "rows", manifest)
    return source


def _add(source: FeatureSource, row: int, text: str, place: Place) -> None:
    if row in source.places:
        raise InputError(f"{place}: the image {text} stands in {source.place(row)} too; take one of the rows out")
    source.places[row], source.counts[row] = place, place.at.boxes
    if not place.at.sound:
        try:
            source.read(row)
        except UnusableItems as error:
            source.faults[row], source.counts[row] = f"{place}, id {text}: {error}", 0


class TsvRow(dict[str, bytes]):
    """One row: column -> raw field."""

    @classmethod
    def of(cls, line: bytes, columns: tuple[str, ...]) -> TsvRow:
        """Split a line into fields."""
        fields = line.rstrip(b"\r\n").split(b"\t")
        if len(fields) != len(columns):
            raise UnusableItems(f"expected {len(columns)} columns, got {len(fields)}")
        return cls(zip(columns, fields, strict=True))

    def number(self, name: str) -> int:
        """Read a field that is a count."""
        text = self[name]
        if not text.isdigit() or not 0 < int(text) < 2**31:
            raise UnusableItems(f"{name}: expected a positive number, got {text[:20].decode(errors='replace')!r}")
        return int(text)

    def array(self, name: str, dtype: str, boxes: int, values: int) -> np.ndarray:
        """Decode a base64 field: [boxes, values]; [boxes] if `values` is 1."""
        expected = boxes * values * np.dtype(dtype).itemsize
        with refusing(binascii.Error, f"{name}: is cut off or damaged, its {len(self[name]):,} characters are no whole "
                      f"base64, expected {-(-expected // 3) * 4:,}", UnusableItems):
            raw = pybase64.b64decode(self[name], validate=True)
        if len(raw) != expected:
            raise UnusableItems(f"{name}: num_boxes {boxes} of {values} values make {expected} bytes, got {len(raw)}"
                                + ", so it is cut off or num_boxes is wrong" * (len(raw) < expected))
        array = np.frombuffer(raw, dtype)
        return array if values == 1 else array.reshape(boxes, values)

    def decoded(self, dimension: int) -> SourceItems:
        """Decode the row's features, boxes and labels."""
        boxes = self.number("num_boxes")
        width, height = (self.number(next(name for name in self if name.endswith(axis))) for axis in ("_w", "_h"))
        extras = {name: self.array(column, dtype, boxes, values) for column in self if column in EXTRAS
                  for name, dtype, values in [EXTRAS[column]]}
        return SourceItems(self.array("features", "<f4", boxes, dimension), extras, (width, height))


class RowPosition(NamedTuple):
    """Where a row of a file is."""

    line: int  # its line, from 1
    start: int  # its first byte
    length: int  # its length in bytes
    boxes: int  # its number of items, 0 where that cannot be read
    sound: bool  # whether it ends where a row with that many items must end


class TsvFile:
    """One file, with the columns and the dimension D of its first row."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as file:
            if file.read(8).startswith(COMPRESSED):
                raise InputError(f"{path}: is compressed; unpack it first, for rows are read in the manifest's order")
            file.seek(0)
            line = self._line(file, 1)
        received = line.count(b"\t") + 1
        if received not in COLUMNS:
            raise InputError(f"{path}, line 1: expected {' or '.join(map(str, COLUMNS))} columns with tabs between "
                             f"them, got {received}; not a TSV of region features")
        self.columns = COLUMNS[received]
        with refusing(UnusableItems, lambda error: f"{path}, line 1: {error}; correct or remove the row"):
            row = TsvRow.of(line, self.columns)
            boxes, length = row.number("num_boxes"), len(row["features"].rstrip(b"=")) * 3 // 4
            if not length or length % (4 * boxes):
                raise UnusableItems(f"features: num_boxes {boxes} does not divide their {length} bytes into float32, "
                                    "so the row is cut off or damaged")
            self.dimension = length // (4 * boxes)

    def rows(self) -> Iterator[tuple[str, RowPosition]]:
        """Find the id and the position of each row; blank lines are skipped."""
        with self._open() as file:
            size, start, line = os.fstat(file.fileno()).st_size, 0, 1
            while start < size:
                file.seek(start)
                head = file.read(HEAD)
                position = self._sound(file, head, line, start, size) or self._whole(file, line, start)
                row = head[:position.length]
                if row.strip():
                    text = row.split(b"\t", 1)[0].strip()[:200].decode(errors="replace")
                    if not text:
                        raise InputError(f"{self.path}, line {line}: expected an id in the first column, got "
                                         f"{head[:20]!r}; correct or remove the row")
                    yield text, position
                start, line = start + position.length, line + 1

    def _sound(self, file: BinaryIO, head: bytes, line: int, start: int, size: int) -> RowPosition | None:
        """The row that begins with `head`, None where it does not end where it should."""
        before = self.columns.index("num_boxes") + 1
        fields = head.split(b"\t", before)[:before]
        known = sum(map(len, fields)) + before - 1
        if len(fields) < before or b"\n" in head[:known]:
            return None
        try:
            boxes = TsvRow(zip(self.columns, fields, strict=False)).number("num_boxes")
        except UnusableItems:
            return None
        # After num_boxes: a tab, the boxes, a tab, the features.
        length = known + 2 + sum(-(-boxes * values * 4 // 3) * 4 for values in (4, self.dimension))
        if start + length > size:
            return None
        file.seek(start + length)
        end = file.read(2)
        if not end.startswith((b"\n", b"\r\n")) and (end or start + length != size):
            return None
        return RowPosition(line, start, length + end.find(b"\n") + 1, boxes, True)

    def _whole(self, file: BinaryIO, line: int, start: int) -> RowPosition:
        """A row that is read to its end."""
        file.seek(start)
        raw = self._line(file, line)
        try:
            boxes = TsvRow.of(raw, self.columns).number("num_boxes")
        except UnusableItems:
            boxes = 0
        return RowPosition(line, start, len(raw), boxes, False)

    def _open(self) -> BinaryIO:
        with refusing(OSError, lambda error: f"{self.path}: {error.strerror}; name the .tsv files"):
            return self.path.open("rb")

    def _line(self, file: BinaryIO, number: int) -> bytes:
        line = file.readline(LONGEST)
        if len(line) == LONGEST:
            raise InputError(f"{self.path}, line {number}: longer than {LONGEST:,} bytes; not a TSV of region features")
        return line
