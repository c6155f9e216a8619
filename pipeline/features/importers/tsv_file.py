"""Index a TSV: find where each row begins and ends.

It reads the head of a row and skips its features, so that it reads about a hundredth of the file. Where the computed
length does not lead to the end of a row, the row is read completely and marked for examination.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pipeline.features.importers.base import UnusableItems
from pipeline.features.importers.tsv_row import COLUMNS, TsvRow, length_after
from pipeline.parts.errors import InputError

HEAD = 1 << 13  # bytes; what stands before the boxes fits for some 250 of them
LONGEST = 1 << 26  # bytes of a row
COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")


@dataclass(frozen=True)
class RowPosition:
    """The position of a row."""

    line: int  # its line, from 1
    start: int  # its first byte
    length: int  # its length in bytes
    boxes: int  # its number of items, 0 where that cannot be read
    sound: bool  # whether it ends where a row with that many items must end


class TsvFile:
    """One file.

    Attributes:
        path: The file.
        columns: The names of its columns.
        dimension: D, from its first row.

    Args:
        path: The file.

    Raises:
        InputError: If it is missing, compressed or not such a TSV.
    """

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
        try:
            self.dimension = TsvRow.of(line, self.columns).dimension()
        except UnusableItems as error:
            raise InputError(f"{path}, line 1: {error}; mend or take out the row") from None

    def rows(self) -> Iterator[tuple[str, RowPosition]]:
        """Find all rows; blank lines are skipped."""
        with self._open() as file:
            size, start, line = os.fstat(file.fileno()).st_size, 0, 1
            while start < size:
                file.seek(start)
                head = file.read(HEAD)
                text, place = self._sound(file, head, line, start, size) or self._other(file, line, start)
                if head[:place.length].strip():
                    if not text:
                        raise InputError(f"{self.path}, line {line}: expected an id in the first column, got "
                                         f"{head[:20]!r}; mend or take out the row")
                    yield text, place
                start, line = start + place.length, line + 1

    def _sound(self, file: BinaryIO, head: bytes, line: int, start: int, size: int) -> tuple[str, RowPosition] | None:
        """The row that begins with `head`, None where it does not end where it should."""
        before = self.columns.index("num_boxes") + 1
        fields = head.split(b"\t", before)[:before]
        told = sum(map(len, fields)) + before - 1
        if len(fields) < before or b"\n" in head[:told]:
            return None
        try:
            boxes = TsvRow(self.columns, fields).number("num_boxes")
        except UnusableItems:
            return None
        length = told + length_after(boxes, self.dimension)
        if start + length > size:
            return None
        file.seek(start + length)
        end = file.read(2)
        if not end.startswith((b"\n", b"\r\n")) and (end or start + length != size):
            return None
        return _text(fields[0]), RowPosition(line, start, length + end.find(b"\n") + 1, boxes, True)

    def _other(self, file: BinaryIO, line: int, start: int) -> tuple[str, RowPosition]:
        file.seek(start)
        raw = self._line(file, line)
        try:
            boxes = TsvRow.of(raw, self.columns).number("num_boxes")
        except UnusableItems:
            boxes = 0
        return _text(raw.split(b"\t", 1)[0]), RowPosition(line, start, len(raw), boxes, False)

    def _open(self) -> BinaryIO:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror}; name the .tsv files") from None

    def _line(self, file: BinaryIO, number: int) -> bytes:
        line = file.readline(LONGEST)
        if len(line) == LONGEST:
            raise InputError(f"{self.path}, line {number}: longer than {LONGEST:,} bytes; not a TSV of region features")
        return line


def _text(field: bytes) -> str:
    return field.strip()[:200].decode(errors="replace")
