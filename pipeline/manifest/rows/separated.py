"""CSV and its kin: commas, semicolons, tabs or bars between cells, with or without a header, under any suffix.

The separator is the one by which the first line has the columns of a data set. Without a header, the column of images
is the one whose cells are names or addresses of images, as in CC3M's TSV and Flickr's `*.token`. A line that is no CSV,
such as one with a quote that is never closed, is left out, and reading resumes at the next line.
"""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.files.gallery_file import IMAGE_SUFFIXES, VIDEO_SUFFIXES
from pipeline.files.left_out import LeftOut
from pipeline.manifest import table
from pipeline.manifest.rows.columns import find
from pipeline.manifest.rows.row_file import Batch, RowFile
from pipeline.manifest.split_names import split_of
from pipeline.manifest.text_file import TextFile, is_text

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
LOOKED_AT = 50  # rows of the file's beginning
SEP_LINE = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # Excel's first line
NUMBER = re.compile(r"#\d+$")  # Flickr's token files number an image's captions: a.jpg#0


class Layout(NamedTuple):
    """How a file is separated, and its columns."""

    separator: str
    names: list[str]
    skipped: int  # lines before the first row
    quoted: bool = True

    def reader(self, lines: Iterable[str]) -> Any:
        """Read cells from lines; csv.Error where they are no CSV."""
        return csv.reader(lines, delimiter=self.separator, strict=True, skipinitialspace=self.separator in ",;",
                          quoting=csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE)

    @property
    def is_whole(self) -> bool:
        """Whether images and captions are recognised."""
        roles = find(self.names).roles
        return "caption" in roles and bool({"image", "video"} & roles.keys())


class SeparatedFile(RowFile):
    """A file of cells, see `row_file.RowFile`."""

    unit = "line"

    def __init__(self, path: Path) -> None:
        self.path, self._file = path, TextFile(path)
        lines = self._file.beginning().replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._layout = layout_of(lines if len(lines) < 2 else lines[:-1] if lines[-1] else lines)
        self.names = self._layout.names
        self.first = next((row for row in _parsed(self._layout, lines[self._layout.skipped:]) if row), [])
        headed = "" if self._layout.skipped else ", no header"
        self.title = f"CSV, separated by {SEPARATORS.get(self._layout.separator, self._layout.separator)}{headed}, " \
                     f"{self._file.called}"

    def batches(self, columns: Sequence[int], left_out: LeftOut) -> Iterator[Batch]:
        """Read rows, see `RowFile`."""
        lines = islice(self._file.lines("surrogateescape"), self._layout.skipped, None)
        rows = _Rows(lines, self._layout, self.path, left_out)
        numbered = not self._layout.skipped and NUMBER.search("".join(self.first[:1])) is not None
        while some := rows.some(table.AT_ONCE):
            line_numbers, good = self._good(*some, max(columns) + 1, left_out)
            taken = [[row[column] for row in good] for column in columns]
            if numbered:
                taken[0] = [NUMBER.sub("", name) for name in taken[0]]
            yield Batch(line_numbers, taken)

    def _good(self, first: int, rows: list[list[str]], a_line_each: bool, needed: int, left_out: LeftOut
              ) -> tuple[Sequence[int], list[list[str]]]:
        """Leave out damaged rows, and blank ones."""
        are_whole = a_line_each and {*map(len, rows)} == {len(self.names)} and all(map(any, rows))
        if are_whole and not self._file.is_damaged:
            return range(first, first + len(rows)), rows
        line_numbers = accumulate((1 + sum(cell.count("\n") for cell in row) for row in rows), initial=first)
        good = []
        for place, row in zip(line_numbers, rows, strict=False):
            if any(row) and (wrong := self._wrong(row, needed)):
                left_out.add("damaged row", f"{self.path}, line {place}: {wrong}")
            elif any(row):
                good.append((place, row))
        return [place for place, _ in good], [row for _, row in good]

    def _wrong(self, row: list[str], needed: int) -> str:
        """What is wrong with a row, "" if nothing is."""
        if any(row[len(self.names):]):
            return "more fields than columns; put quotes round a caption that holds a separator"
        if len(row) < needed:
            return "a field is missing"
        if self._file.is_damaged and not is_text("".join(row)):
            return "not UTF-8; if it is GBK, convert it with iconv -f GBK -t UTF-8"
        return ""


def layout_of(lines: Sequence[str]) -> Layout:
    """Find the layout of a file by its first lines."""
    marked = SEP_LINE.fullmatch(lines[0]) if lines else None
    lines, skipped = (lines[1:], 1) if marked else (lines, 0)
    candidates = [marked[1]] if marked else [*SEPARATORS]
    headed, bare = [], []
    for separator in candidates:
        guess = Layout(separator, [], skipped)
        guess = guess._replace(quoted=separator in ",;" or _is_quoted(guess, lines))
        rows = [row for row in _parsed(guess, lines[:LOOKED_AT]) if row]
        if rows:
            headed.append(guess._replace(names=[name.strip() for name in rows[0]], skipped=skipped + 1))
            bare.append(guess._replace(names=_columns_of(rows)))
    whole = [layout for layout in headed if layout.is_whole]
    if whole:
        return max(whole, key=lambda layout: len(find(layout.names).roles))
    whole = [layout for layout in bare if layout.is_whole]
    return whole[0] if whole else max(headed, key=lambda layout: len(layout.names), default=Layout(",", [], 1))


def _columns_of(rows: list[list[str]]) -> list[str]:
    """Names for the columns of rows without a header; without "image" and "caption" where they are not recognised."""
    width = max(map(len, rows))
    columns = [[row[column].strip() for row in rows if len(row) > column] for column in range(width)]
    names = ["" for _ in columns]
    images = [column for column, cells in enumerate(columns) if sum(map(_is_file, cells)) > 0.9 * len(rows)]
    texts = [column for column in range(width) if column not in images]
    if len(images) != 1 or not texts:
        return names
    suffix = Path(NUMBER.sub("", columns[images[0]][0])).suffix.lower()
    names[images[0]] = "video" if suffix in VIDEO_SUFFIXES else "image"
    names[max(texts, key=lambda column: sum(map(len, columns[column])))] = "caption"
    for column in texts:
        if not names[column] and all(map(split_of, columns[column])):
            names[column] = "split"
    return names


def _is_file(cell: str) -> bool:
    return (Path(NUMBER.sub("", cell)).suffix.lower() in IMAGE_SUFFIXES | VIDEO_SUFFIXES and len(cell.split()) < 3) \
        or cell.startswith(("http://", "https://"))


def _is_quoted(layout: Layout, lines: Sequence[str]) -> bool:
    """Whether quotes are around cells, as CSV has them, and are not letters of captions."""
    try:
        for _ in layout.reader(lines):
            pass
    except csv.Error:
        return False
    return True


def _parsed(layout: Layout, lines: Sequence[str]) -> list[list[str]]:
    """Rows as far as they are CSV."""
    rows, reader = [], layout.reader(f"{line}\n" for line in lines)
    with suppress(csv.Error):
        rows.extend(reader)  # what comes before an error stays
    return rows


class _Rows:
    """Rows from lines, some at a time. What was read since the last call is kept, to be read again by the row."""

    def __init__(self, lines: Iterator[str], layout: Layout, path: Path, left_out: LeftOut) -> None:
        self._lines, self._layout, self._path, self._left_out = lines, layout, path, left_out
        self._recent: list[str] = []
        self._line = layout.skipped + 1
        self._reader = layout.reader(self._recorded())

    def _recorded(self) -> Iterator[str]:
        recent = self._recent
        for line in self._lines:
            recent.append(line)
            yield line

    def some(self, most: int) -> tuple[int, list[list[str]], bool] | None:
        """The line of the first row, at most so many rows, and whether each is a line; None at the end."""
        first = self._line
        try:
            rows = list(islice(self._reader, most))
        except csv.Error:
            return self._by_row(most)
        read = len(self._recent)
        self._line += read
        self._recent.clear()
        if rows and not rows[-1]:
            del rows[-1]  # behind the last line's end
            read -= 1
        return (first, rows, read == len(rows)) if read else None

    def _by_row(self, most: int) -> tuple[int, list[list[str]], bool]:
        waiting, rows, first = deque(self._recent), list[list[str]](), self._line
        while len(rows) < most:
            taken: list[str] = []
            try:
                row = next(self._layout.reader(self._taking(waiting, taken)), None)
            except csv.Error as error:
                self._left_out.add("damaged row", f"{self._path}, line {self._line}: {error}")
                waiting.extendleft(reversed(taken[1:]))
                rows.append([])  # stands for the line
                self._line += 1
                continue
            if row is None:
                break
            rows.append(row)
            self._line += len(taken)
        self._lines = chain(waiting, self._lines)
        self._recent.clear()
        self._reader = self._layout.reader(self._recorded())
        return first, rows, False

    def _taking(self, waiting: deque[str], taken: list[str]) -> Iterator[str]:
        while (line := waiting.popleft() if waiting else next(self._lines, None)) is not None:
            taken.append(line)
            yield line
