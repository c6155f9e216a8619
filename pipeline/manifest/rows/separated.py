"""CSV and its kin: commas, semicolons, tabs or bars between cells, with or without a header, under
any suffix.

The separator is the one by which the first line has the columns of a data set. Without a header,
the column of images is the one whose cells are names or addresses of images, as in CC3M's TSV and
Flickr's `*.token`. A line that is no CSV, such as one with a quote that is never closed, is left
out, and reading resumes at the next line.
"""

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.files.gallery_file import IMAGE_SUFFIXES, VIDEO_SUFFIXES
from pipeline.files.left_out import LeftOut
from pipeline.manifest import table
from pipeline.manifest.rows.columns import find
from pipeline.manifest.rows.row_file import Batch, RowFile
from pipeline.manifest.split_names import split_of
from pipeline.manifest.text_file import TextFile, is_text
from pipeline.parts.errors import InputError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
MOST_DAMAGED = 50_000  # lines without any row before a file is refused
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
        return csv.reader(
            lines,
            delimiter=self.separator,
            strict=True,
            skipinitialspace=self.separator in ",;",
            quoting=csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE,
        )

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
        self._read = 0  # rows that are no damaged ones
        lines = self._file.beginning().replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._layout = layout_of(
            lines[:-1] if len(lines) > 1 and lines[-1] else lines
        )  # the last may be cut off
        self.names = self._layout.names
        self.first = next(
            (row for row in _parsed(self._layout, lines[self._layout.skipped :]) if row), []
        )
        headed = "" if self._layout.skipped else ", no header"
        self.title = (
            f"CSV, separated by {SEPARATORS.get(self._layout.separator, self._layout.separator)}{headed}, "
            f"{self._file.called}"
        )

    def batches(self, columns: Sequence[int], left_out: LeftOut) -> Iterator[Batch]:
        """Read rows, see `RowFile`."""
        lines, first = (
            islice(self._file.lines("surrogateescape"), self._layout.skipped, None),
            self._layout.skipped + 1,
        )
        numbered = not self._layout.skipped and NUMBER.search("".join(self.first[:1])) is not None
        while some := list(islice(lines, table.AT_ONCE)):
            if self._file.is_damaged or (rows := self._plain(some)) is None:
                numbers, rows, first = self._by_row(
                    deque(some), lines, first, max(columns) + 1, left_out
                )
            else:
                numbers, first = range(first, first + len(some)), first + len(some)
                self._read += len(rows)
            taken = [[row[column] for row in rows] for column in columns]
            if numbered:
                taken[0] = [NUMBER.sub("", name) for name in taken[0]]
            yield Batch(numbers, taken)

    def _plain(self, lines: list[str]) -> list[list[str]] | None:
        """The rows of lines where each line is one with a cell for each column, as almost always;
        else None.
        """
        try:
            rows = [*self._layout.reader(lines)]
        except csv.Error:
            return None
        return (
            rows
            if len(rows) == len(lines)
            and {*map(len, rows)} == {len(self.names)}
            and all(map(any, rows))
            else None
        )

    def _by_row(
        self, waiting: deque[str], lines: Iterator[str], line: int, needed: int, left_out: LeftOut
    ) -> tuple[Sequence[int], list[list[str]], int]:
        """The undamaged rows of so many cells that begin in the waiting lines, with their lines;
        and the next line.

        line: the number of the first. Of a row that is no CSV one line is left out; reading resumes
            at the next.
        """
        good = dict[int, list[str]]()
        while waiting:
            of_row: list[str] = []
            try:
                row = next(self._layout.reader(_taking(waiting, lines, of_row)), list[str]())
                wrong = self._wrong(row, needed) if any(row) else ""
            except csv.Error as error:
                row, wrong = [], str(error)
                waiting.extendleft(reversed(of_row[1:]))
                del of_row[1:]
            if wrong:
                left_out.add("damaged row", f"{self.path}, line {line}: {wrong}")
            elif any(row):
                good[line] = row
            line += len(of_row)
        self._read += len(good)
        if not self._read and line > MOST_DAMAGED:
            raise InputError(
                f"{self.path}: none of its first {line:,} lines is a row of images and captions; is a "
                "quotation never closed?"
            )
        return [*good], [*good.values()], line

    def _wrong(self, row: list[str], needed: int) -> str:
        """What is wrong with a row, "" if nothing is."""
        if any(row[len(self.names) :]):
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
            headed.append(
                guess._replace(names=[name.strip() for name in rows[0]], skipped=skipped + 1)
            )
            bare.append(guess._replace(names=_columns_of(rows)))
    whole = [layout for layout in headed if layout.is_whole]
    if whole:
        return max(whole, key=lambda layout: len(find(layout.names).roles))
    whole = [layout for layout in bare if layout.is_whole]
    return (
        whole[0]
        if whole
        else max(headed, key=lambda layout: len(layout.names), default=Layout(",", [], 1))
    )


def _columns_of(rows: list[list[str]]) -> list[str]:
    """Names for the columns of rows without a header; without "image" and "caption" where they are
    not recognised.
    """
    width = max(map(len, rows))
    columns = [
        [row[column].strip() for row in rows if len(row) > column] for column in range(width)
    ]
    names = ["" for _ in columns]
    images = [
        column
        for column, cells in enumerate(columns)
        if sum(map(_is_file, cells)) > 0.9 * len(rows)
    ]
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
    return (
        Path(NUMBER.sub("", cell)).suffix.lower() in IMAGE_SUFFIXES | VIDEO_SUFFIXES
        and len(cell.split()) < 3
    ) or cell.startswith(("http://", "https://"))


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


def _taking(waiting: deque[str], lines: Iterator[str], taken: list[str]) -> Iterator[str]:
    """Waiting lines, then others, as they are needed; `taken` receives them."""
    while (line := waiting.popleft() if waiting else next(lines, None)) is not None:
        taken.append(line)
        yield line
