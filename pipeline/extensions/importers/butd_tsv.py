"""TSV files of region features, as bottom-up-attention, LXMERT and VinVL write them: one or
several, rows in any order.

A row has plain text fields, and arrays in base64. The index reads the head of a row and skips its
features, so that it reads about a hundredth of a file. Where the computed length does not lead to
the end of a row, the row is read completely and marked for examination.

A process that dies leaves a row cut off, and the next process writes its first row on the same
line; often the image of the cut row comes again later. Of several rows of an image the first whole
one counts; damaged rows and those that repeat an image with other features are left out.
"""

from __future__ import annotations

import binascii
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import pybase64

from pipeline.extensions.importers.base import (
    UNKNOWN_SIZE,
    FeatureSource,
    OnFound,
    Place,
    SourceItems,
    UnusableItems,
)
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.image_ids import finder
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.make.features.extractors.butd import extras as butd

# peteanderson80/bottom-up-attention, tools/generate_tsv.py; LXMERT (airsplay/lxmert), whose arrays
# of objects and attributes stand before num_boxes; VinVL's features.tsv (microsoft/Oscar). None
# writes a header, but users do.
ANDERSON = ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features")
LXMERT = (
    "img_id",
    "img_h",
    "img_w",
    "objects_id",
    "objects_conf",
    "attrs_id",
    "attrs_conf",
    "num_boxes",
    "boxes",
    "features",
)
VINVL = ("image_id", "num_boxes", "features")
COLUMNS = {len(columns): columns for columns in (ANDERSON, LXMERT, VINVL)}
TOOLS = {ANDERSON: "bottom-up-attention", LXMERT: "LXMERT", VINVL: "VinVL"}
# Column -> (what the BUTD engines call it, its dtype in the file, values an item).
EXTRAS = {
    "boxes": ("boxes", "<f4", 4),
    "objects_id": ("object", "<i8", 1),
    "objects_conf": ("object_score", "<f4", 1),
    "attrs_id": ("attribute", "<i8", 1),
    "attrs_conf": ("attribute_score", "<f4", 1),
}
HEAD = 1 << 13  # bytes; what stands before the boxes fits for some 250 of them
LONGEST = 1 << 26  # bytes of a row
TRIED = 20  # lines, of which one at least must be a whole row
DAMAGED = "damaged row"  # why a row is left out
COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")


def index(paths: Sequence[Path], manifest: Manifest, on_found: OnFound) -> FeatureSource:
    """Find the row of each of the manifest's images in the files. Only offsets are kept."""
    files = [TsvFile(path) for path in sorted(paths)]
    first = files[0]
    columns = first.columns
    dimension = first.dimension
    texts: list[str] = []
    positions: list[tuple[Path, RowPosition]] = []
    for file in files:
        if (file.columns, file.dimension) != (columns, dimension):
            raise InputError(
                f"{file.path}, line 1: {len(file.columns)} columns and {file.dimension} values a box, but "
                f"{first.path.name} has {len(columns)} and {dimension}; give one set of features"
            )
        for text, position in file.rows():
            texts.append(text)
            positions.append((file.path, position))
            on_found(1)

    def read(place: Place) -> SourceItems:
        with place.file.open("rb", buffering=0) as file:
            raw = os.pread(file.fileno(), place.at.length, place.at.start)
        return TsvRow.of(raw, columns).decoded(dimension)

    beside = {name for column, (name, _, _) in EXTRAS.items() if column in columns}
    source = FeatureSource(
        manifest,
        read,
        dimension,
        [file.path for file in files],
        entries=len(texts),
        extras={name: extra for name, extra in butd.EXTRAS.items() if name in beside},
        title=f"{TOOLS[columns]}'s TSV, {len(columns)} columns: {', '.join(columns)}",
    )
    _place(source, texts, positions)
    return source


def _place(
    source: FeatureSource, texts: list[str], positions: list[tuple[Path, RowPosition]]
) -> None:
    """Add the rows of the manifest's images to the source."""
    sure = []
    for text, (_, position) in zip(texts, positions, strict=True):
        if not position.joined:
            sure.append(text)
    find = finder(sure, source.manifest, source.files[0])
    places_of_row: dict[int, list[Place]] = {}
    rows: list[int | None] = []
    for text, (path, position) in zip(texts, positions, strict=True):
        id_: str | None = text
        if position.joined:
            id_ = _last_id(text, sure, find)
            position = position.with_id(id_ or "")
        row = None if id_ is None else find(id_)
        rows.append(row)
        if row is not None:
            place = Place(path, f"line {position.line}, id {id_ or '?'}", position)
            places_of_row.setdefault(row, []).append(place)
        elif id_ is None or not position.boxes:
            source.left_out.add(
                DAMAGED, f"{path}, line {position.line}: begins with {text[-40:]!a}"
            )
    for row, several in places_of_row.items():
        first = several[0]
        if len(several) == 1 and first.at.sound:
            source.places[row] = first
            source.counts[row] = first.at.boxes
        else:
            source.add_whole(row, several, DAMAGED)
    source.count_others(rows, "rows")


def _last_id(text: str, ids: Sequence[str], find: Callable[[str], int | None]) -> str | None:
    """The id at the end of a field that begins with the rest of a cut row; None if several may be
    meant.
    """
    lengths = {*map(len, ids)}
    are_numbers = all(known.isdigit() for known in ids)
    ends: dict[int, str] = {}
    for length in sorted(lengths):
        if length > len(text):
            continue
        end = text[-length:]
        row = find(end)
        if row is None:
            continue
        if not are_numbers or (end.isdigit() and end[0] != "0"):
            ends[row] = end
    if len(ends) != 1:
        return None
    return next(iter(ends.values()))


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
            raise UnusableItems(
                f"{name}: expected a positive number, got {text[:20].decode(errors='replace')!r}"
            )
        return int(text)

    def array(self, name: str, dtype: str, boxes: int, values: int) -> np.ndarray:
        """Decode a base64 field: [boxes, values]; [boxes] if `values` is 1."""
        expected = boxes * values * np.dtype(dtype).itemsize
        field = self[name]
        with refusing(
            binascii.Error,
            f"{name}: is cut off or damaged, its {len(field):,} characters are no whole "
            f"base64, expected {-(-expected // 3) * 4:,}",
            UnusableItems,
        ):
            raw = pybase64.b64decode(field, validate=True)
        if len(raw) != expected:
            cut_off = ", so it is cut off or num_boxes is wrong" if len(raw) < expected else ""
            raise UnusableItems(
                f"{name}: num_boxes {boxes} of {values} values make {expected} bytes, got {len(raw)}"
                f"{cut_off}"
            )
        array = np.frombuffer(raw, dtype)
        return array if values == 1 else array.reshape(boxes, values)

    def decoded(self, dimension: int) -> SourceItems:
        """Decode the row's features, boxes and labels."""
        boxes = self.number("num_boxes")
        widths = [self.number(name) for name in self if name.endswith("_w")]
        heights = [self.number(name) for name in self if name.endswith("_h")]
        extras = {}
        for column in self:
            if column in EXTRAS:
                name, dtype, values = EXTRAS[column]
                extras[name] = self.array(column, dtype, boxes, values)
        features = self.array("features", "<f4", boxes, dimension)
        size = UNKNOWN_SIZE
        if widths:
            size = (widths[0], heights[0])
        return SourceItems(features, extras, size)


class RowPosition(NamedTuple):
    """Where a row of a file is."""

    line: int  # its line, from 1
    start: int  # its first byte
    length: int  # its length in bytes
    boxes: int  # its number of items, 0 where that cannot be read
    sound: bool  # whether it ends where a row with that many items must end
    # whether its id directly follows a row that was cut off; `start` is then the id's end
    joined: bool = False

    def with_id(self, id_: str) -> RowPosition:
        """The position of a joined row from the beginning of its id."""
        start = self.start - len(id_)
        return self._replace(start=start, length=self.length + len(id_))


class TsvFile:
    """One file, with the columns and the dimension D of its first whole row."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Behind a header.
        self.start = 0
        self.first_line = 1
        with self._open() as file:
            if file.read(8).startswith(COMPRESSED):
                raise InputError(
                    f"{path}: is compressed; unpack it first, for rows are read in the manifest's order"
                )
            file.seek(0)
            self.columns, self.dimension = self._recognised(file)

    def _recognised(self, file: BinaryIO) -> tuple[tuple[str, ...], int]:
        """The columns and the dimension, of the first whole row; damaged ones may come before
        it.
        """
        wrong = ""
        for number in range(1, TRIED + 1):
            line = self._line(file, number)
            first = line[:200].split(b"\t")[0].strip().lower()
            if number == 1 and first in (b"image_id", b"img_id"):
                self._check_header(line)
                self.start = file.tell()
                self.first_line = 2
                continue
            try:
                return _shape_of(line)
            except UnusableItems as error:
                wrong = wrong or f"{self.path}, line {number}: {error}"
            if not line:
                break
        raise InputError(wrong)

    def _check_header(self, line: bytes) -> None:
        names = tuple(line.decode(errors="replace").strip().lower().split("\t"))
        if names not in TOOLS:
            expected = " or ".join(", ".join(columns) for columns in TOOLS)
            raise InputError(
                f"{self.path}, line 1: the header names {', '.join(names)[:200]}; expected {expected}"
            )

    def rows(self) -> Iterator[tuple[str, RowPosition]]:
        """Find the id and the position of each row; blank lines are skipped."""
        start = self.start
        line = self.first_line
        with self._open() as file:
            size = os.fstat(file.fileno()).st_size
            while start < size:
                file.seek(start)
                head = file.read(HEAD)
                position = self._sound(file, head, line, start, size)
                if position is not None:
                    length = position.length
                    yield _id(head[:length]), position
                else:
                    file.seek(start)
                    raw = self._line(file, line)
                    length = len(raw)
                    if raw.strip():
                        yield from self._examined(raw, line, start)
                start += length
                line += 1

    def _sound(
        self, file: BinaryIO, head: bytes, line: int, start: int, size: int
    ) -> RowPosition | None:
        """The row that begins with `head`, None where it does not end where it should."""
        before = self.columns.index("num_boxes") + 1
        fields = head.split(b"\t", before)[:before]
        known = _length(fields)
        if len(fields) < before or b"\n" in head[:known] or not fields[0].strip():
            return None
        try:
            boxes = TsvRow(zip(self.columns, fields, strict=False)).number("num_boxes")
        except UnusableItems:
            return None
        length = known + sum(1 + field for field in self._lengths(boxes))
        if start + length > size:
            return None
        file.seek(start + length)
        end = file.read(2)
        is_last = not end and start + length == size
        if not is_last and not end.startswith((b"\n", b"\r\n")):
            return None
        return RowPosition(line, start, length + end.find(b"\n") + 1, boxes, True)

    def _lengths(self, boxes: int) -> list[int]:
        """Characters of the fields that follow num_boxes."""
        values = {"boxes": 4, "features": self.dimension}
        lengths = []
        for name in self.columns[self.columns.index("num_boxes") + 1 :]:
            size = boxes * values[name] * 4
            lengths.append(-(-size // 3) * 4)
        return lengths

    def _examined(self, raw: bytes, line: int, start: int) -> list[tuple[str, RowPosition]]:
        """The rows of a line that does not end where a row must: a damaged one, and those behind
        it.
        """
        fields = raw.rstrip(b"\r\n").split(b"\t")
        behind = len(self.columns) - 1
        joined_rows: list[tuple[str, RowPosition]] = []
        while True:
            boxes = self._boxes_of_last(fields)
            if not boxes:
                break
            length = 1 + _length(fields[-behind:])
            fields = fields[:-behind]
            end = start + _length(fields)
            before = self._boxes(fields)
            whole = self._lengths(before)[-1] if before else len(fields[-1])
            rest = fields[-1][whole:]
            if rest:  # the row before is whole, and lacks its newline alone
                fields[-1] = fields[-1][:whole]
                position = RowPosition(line, end - len(rest), length + len(rest), boxes, True)
                joined_rows.append((_id(rest), position))
            else:
                text = fields[-1][-200:].decode(errors="replace")
                position = RowPosition(line, end, length, boxes, True, joined=True)
                joined_rows.append((text, position))
        first = RowPosition(line, start, _length(fields), self._boxes(fields), False)
        return [(_id(fields[0]), first), *reversed(joined_rows)]

    def _boxes_of_last(self, fields: list[bytes]) -> int:
        """The number of items of the row that ends some fields; 0 if they end in none."""
        behind = len(self.columns) - 1
        if len(fields) <= behind + 1:
            return 0
        boxes = self._boxes([b"", *fields[-behind:]])
        if not boxes:
            return 0
        expected = self._lengths(boxes)
        lengths = list(map(len, fields[-len(expected) :]))
        return boxes if lengths == expected else 0

    def _boxes(self, fields: list[bytes]) -> int:
        """The number of items of a row, 0 where that cannot be read."""
        try:
            return TsvRow(zip(self.columns, fields, strict=True)).number("num_boxes")
        except (UnusableItems, ValueError):
            return 0

    def _open(self) -> BinaryIO:
        with refusing(OSError, lambda error: f"{self.path}: {error.strerror}; name the .tsv files"):
            return self.path.open("rb")

    def _line(self, file: BinaryIO, number: int) -> bytes:
        line = file.readline(LONGEST)
        if len(line) == LONGEST:
            raise InputError(
                f"{self.path}, line {number}: longer than {LONGEST:,} bytes; not a TSV of region features"
            )
        return line


def _length(fields: Sequence[bytes]) -> int:
    """Characters of fields with the tabs between them."""
    return sum(map(len, fields)) + len(fields) - 1


def _shape_of(line: bytes) -> tuple[tuple[str, ...], int]:
    """The columns and the dimension of a row; UnusableItems if it is none."""
    received = line.count(b"\t") + 1
    columns = COLUMNS.get(received)
    if columns is None:
        raise UnusableItems(
            f"expected 3, 6 or 10 columns with tabs between them, got {received}; not a TSV of region "
            f"features: it begins with {line[:40].decode(errors='replace')!a}"
        )
    row = TsvRow.of(line, columns)
    boxes = row.number("num_boxes")
    length = len(row["features"].rstrip(b"=")) * 3 // 4
    if not length or length % (4 * boxes):
        raise UnusableItems(
            f"features: num_boxes {boxes} does not divide their {length} bytes into float32, so the "
            "row is cut off or damaged; correct or remove the row"
        )
    return columns, length // (4 * boxes)


def _id(row: bytes) -> str:
    return row.split(b"\t", 1)[0].strip()[:200].decode(errors="replace")
