"""CSV and its kin: commas, semicolons, tabs or bars between cells, with or without a header, under
any suffix.

The separator is the one by which the first line has the columns of a data set. Without a header, or
with unknown headings, the column of images is the one whose cells are names or addresses of images,
as in CC3M's TSV and Flickr's `*.token`. Under unknown headings the captions are found only if one
column alone can be them. A line that is no CSV, such as one with a quote that is never closed, is
left out, and reading resumes at the next line.
"""

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.foundation.files.gallery_file import IMAGE_SUFFIXES, VIDEO_SUFFIXES
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest import table
from pipeline.foundation.manifest.rows.columns import IMAGE_ADDRESSES, find, plain
from pipeline.foundation.manifest.rows.row_file import Batch, RowFile
from pipeline.foundation.manifest.split_names import split_of
from pipeline.foundation.manifest.text_file import TextFile, is_text
from pipeline.foundation.parts.errors import InputError

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
    by_cells: Mapping[str, int] = {}  # see `row_file.RowFile`

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
        roles = find(self.names, self.by_cells).roles
        return "caption" in roles and bool({"image", "video"} & roles.keys())


class SeparatedFile(RowFile):
    """A file of cells, see `row_file.RowFile`."""

    unit = "line"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = TextFile(path)
        self._read = 0  # rows that are no damaged ones
        beginning = self._file.beginning().replace("\r\n", "\n").replace("\r", "\n")
        lines = beginning.split("\n")
        complete = lines
        if len(lines) > 1 and lines[-1]:  # the last may be cut off
            complete = lines[:-1]
        self._layout = layout_of(complete)
        self.names = self._layout.names
        self.by_cells = self._layout.by_cells
        rows = _parsed(self._layout, lines[self._layout.skipped :])
        self.first = next(filter(None, rows), [])
        separator = self._layout.separator
        called = SEPARATORS.get(separator, separator)
        if not self._layout.skipped:
            called += ", no header"
        self.title = f"CSV, separated by {called}, {self._file.called}"

    def batches(self, columns: Sequence[int], left_out: LeftOut) -> Iterator[Batch]:
        """Read rows, see `RowFile`."""
        skipped = self._layout.skipped
        lines = islice(self._file.lines("surrogateescape"), skipped, None)
        first_line = skipped + 1
        first_cell = "".join(self.first[:1])
        is_numbered = not skipped and NUMBER.search(first_cell) is not None
        while True:
            batch = list(islice(lines, table.AT_ONCE))
            if not batch:
                return
            rows = None
            if not self._file.is_damaged:
                rows = self._plain(batch)
            line_numbers: Sequence[int] = range(first_line, first_line + len(batch))
            if rows is not None:
                first_line += len(batch)
                self._read += len(rows)
            else:
                waiting = deque(batch)
                needed = max(columns) + 1
                line_numbers, rows, first_line = self._by_row(
                    waiting, lines, first_line, needed, left_out
                )
            cells_of_columns = [_cells(rows, column) for column in columns]
            if is_numbered:
                cells_of_columns[0] = [NUMBER.sub("", name) for name in cells_of_columns[0]]
            yield Batch(line_numbers, cells_of_columns)

    def _plain(self, lines: list[str]) -> list[list[str]] | None:
        """The rows of lines where each line is one with a cell for each column, as almost always;
        else None.
        """
        try:
            rows = [*self._layout.reader(lines)]
        except csv.Error:
            return None
        widths = {*map(len, rows)}
        if len(rows) != len(lines) or widths != {len(self.names)}:
            return None
        if all(map(any, rows)):
            return rows
        return None

    def _by_row(
        self, waiting: deque[str], lines: Iterator[str], line: int, needed: int, left_out: LeftOut
    ) -> tuple[Sequence[int], list[list[str]], int]:
        """The undamaged rows of so many cells that begin in the waiting lines, with their lines;
        and the next line.

        line: the number of the first. Of a row that is no CSV one line is left out; reading resumes
            at the next.
        """
        undamaged_rows = dict[int, list[str]]()
        while waiting:
            of_row: list[str] = []
            reader = self._layout.reader(_taking(waiting, lines, of_row))
            damage = ""
            try:
                row = next(reader, list[str]())
            except csv.Error as error:
                row = []
                damage = str(error)
                waiting.extendleft(reversed(of_row[1:]))
                del of_row[1:]
            if any(row):
                damage = self._wrong(row, needed)
            if damage:
                left_out.add("damaged row", f"{self.path}, line {line}: {damage}")
            elif any(row):
                undamaged_rows[line] = row
            line += len(of_row)
        self._read += len(undamaged_rows)
        if not self._read and line > MOST_DAMAGED:
            raise InputError(
                f"{self.path}: none of its first {line:,} lines is a row of images and captions; is a "
                "quotation never closed?"
            )
        return [*undamaged_rows], [*undamaged_rows.values()], line

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
    separators = [*SEPARATORS]
    skipped = 0
    marked_separator = SEP_LINE.fullmatch(lines[0]) if lines else None
    if marked_separator is not None:
        separators = [marked_separator[1]]
        skipped = 1
        lines = lines[1:]
    layouts_with_header = []
    layouts_by_names = []
    other_layouts = []
    for separator in separators:
        guess = Layout(separator, [], skipped)
        is_quoted = separator in ",;" or _is_quoted(guess, lines)
        guess = guess._replace(quoted=is_quoted)
        rows = [*filter(None, _parsed(guess, lines[:LOOKED_AT]))]
        if rows:
            header = [name.strip() for name in rows[0]]
            with_header = guess._replace(names=header, skipped=skipped + 1)
            by_cells = _under_headings(header, rows[1:])
            if by_cells is None:
                other_layouts.append(guess._replace(names=_columns_of(rows)))
            else:
                with_header = with_header._replace(by_cells=by_cells)
                other_layouts.append(with_header)
            layouts_with_header.append(with_header)
            layouts_by_names.append(with_header._replace(by_cells={}))
    whole_layouts = [layout for layout in layouts_by_names if layout.is_whole]
    if whole_layouts:
        return max(whole_layouts, key=lambda layout: len(find(layout.names).roles))
    whole_layouts = [layout for layout in other_layouts if layout.is_whole]
    if whole_layouts:
        return whole_layouts[0]
    empty = Layout(",", [], 1)
    return max(layouts_with_header, key=lambda layout: len(layout.names), default=empty)


def _under_headings(header: list[str], rows: list[list[str]]) -> dict[str, int] | None:
    """The roles that only cells show of the columns below a row of headings; None if the first row
    is none.
    """
    if any(_is_file(name) or _has_image_suffix(name) for name in header):
        return None
    cells_of = [_filled(rows, column) for column in range(len(header))]
    image_columns = []
    for column, cells in enumerate(cells_of):
        if cells and sum(map(_is_file, cells)) > 0.9 * len(cells):
            image_columns.append(column)
    named = find(header).roles
    if not named and not any(header[column] for column in image_columns):
        return None
    by_cells: dict[str, int] = {}
    files_by_name = [*named.get("image", ()), *named.get("video", ())]
    has_named_files = any(plain(header[column]) not in IMAGE_ADDRESSES for column in files_by_name)
    if not has_named_files and len(image_columns) == 1:
        image_column = image_columns[0]
        suffix = _suffix(cells_of[image_column][0])
        by_cells["video" if suffix in VIDEO_SUFFIXES else "image"] = image_column
    if "caption" not in named:
        taken_columns = {*image_columns, *chain.from_iterable(named.values())}
        text_columns = []
        for column, cells in enumerate(cells_of):
            if column not in taken_columns and _may_be_captions(cells):
                text_columns.append(column)
        if len(text_columns) == 1 and _look_like_captions(cells_of[text_columns[0]]):
            by_cells["caption"] = text_columns[0]
    return by_cells


def _filled(rows: list[list[str]], column: int) -> list[str]:
    """The cells of a column that are not blank."""
    cells = [row[column].strip() for row in rows if len(row) > column]
    return [cell for cell in cells if cell]


def _may_be_captions(filled_cells: list[str]) -> bool:
    """Whether cells have words, and not only names of splits."""
    has_words = any(letter.isalpha() for cell in filled_cells for letter in cell)
    return has_words and not all(map(split_of, filled_cells))


def _look_like_captions(filled_cells: list[str]) -> bool:
    """Whether most cells are of several words, or of a script that may not part words."""
    long_cells = [cell for cell in filled_cells if " " in cell or not cell.isascii()]
    return 2 * len(long_cells) > len(filled_cells)


def _columns_of(rows: list[list[str]]) -> list[str]:
    """Names for the columns of rows without a header; without "image" and "caption" where they are
    not recognised.
    """
    width = max(map(len, rows))
    columns = []
    for column in range(width):
        long_rows = [row for row in rows if len(row) > column]
        columns.append([cell.strip() for cell in _cells(long_rows, column)])
    column_names = [""] * width
    image_columns = []
    text_columns = []
    for column, cells in enumerate(columns):
        image_cells = sum(map(_is_file, cells))
        if image_cells > 0.9 * len(rows):
            image_columns.append(column)
        else:
            text_columns.append(column)
    if len(image_columns) != 1 or not text_columns:
        return column_names
    image_column = image_columns[0]
    is_video = _suffix(columns[image_column][0]) in VIDEO_SUFFIXES
    column_names[image_column] = "video" if is_video else "image"
    letters = [sum(map(len, cells)) for cells in columns]
    caption_column = max(text_columns, key=letters.__getitem__)
    column_names[caption_column] = "caption"
    for column in text_columns:
        if not column_names[column] and all(map(split_of, columns[column])):
            column_names[column] = "split"
    return column_names


def _is_file(cell: str) -> bool:
    if cell.startswith(("http://", "https://")):
        return True
    return _has_image_suffix(cell) and len(cell.split()) < 3


def _has_image_suffix(cell: str) -> bool:
    return _suffix(cell) in IMAGE_SUFFIXES | VIDEO_SUFFIXES


def _suffix(cell: str) -> str:
    """The suffix of the file that a cell names."""
    name = NUMBER.sub("", cell)
    return Path(name).suffix.lower()


def _cells(rows: Sequence[list[str]], column: int) -> list[str]:
    return [row[column] for row in rows]


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
    rows = []
    reader = layout.reader(f"{line}\n" for line in lines)
    with suppress(csv.Error):
        rows.extend(reader)  # what comes before an error stays
    return rows


def _taking(waiting: deque[str], lines: Iterator[str], taken: list[str]) -> Iterator[str]:
    """Waiting lines, then others, as they are needed; `taken` receives them."""
    while True:
        line = waiting.popleft() if waiting else next(lines, None)
        if line is None:
            return
        taken.append(line)
        yield line
