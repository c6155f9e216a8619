"""Scores as rows of text or of Parquet: a row for each pair, a row for each image, or JSON."""

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation.evaluation.judgements import appearance, typed_columns
from pipeline.foundation.evaluation.judgements.columns import RUN, SPELT, recognised
from pipeline.foundation.files import regular
from pipeline.foundation.files.expansion import Expansion, unpacked
from pipeline.foundation.parts.errors import InputError, first_line, refusing
from pipeline.judge.systems.scores.foreign.arrays import Array, Arrays

EXPECTED = (
    "expected scores: columns query,candidate,score; TREC's `query Q0 document rank score system`; or a row "
    "for each image and a column for each caption, with ids in the first row and column"
)
# How a column of images' ids is called in Parquet.
IMAGES = (*SPELT["image"], "id", "__index_level_0__")
SEPARATORS = ("\t", ",", ";")  # else blanks
# How files of arrays begin.
BINARY = (
    b"\x93NUMPY",
    b"PK",
    b"PAR1",
    b"\x1f\x8b",
    *(bytes([0x80, protocol]) for protocol in range(2, 6)),
)
LARGEST = 1 << 32  # bytes of a table's cells
LONGEST_LINE = 16_000_000  # characters
BLANK_LINES = 1000  # before the first row
START = 1 << 10  # bytes in which JSON is recognised
LONGEST_PAIR = 10_000  # characters of a row of a query, a candidate and a score
ROW = 256  # bytes of a row beside its values, while it is read


def read_text(path: Path) -> Arrays | None:
    """Read a matrix of text; None for a run, which has a row for each pair, and for JSON."""
    why = _why_no_text(path)
    if why:
        raise InputError(f"{path}: {why}")
    with (
        refusing(
            (OSError, csv.Error),
            lambda error: f"{path}: cannot be read as text ({first_line(error)}); {EXPECTED}",
        ),
        refusing(UnicodeDecodeError, f"{path}: {regular.unlike_utf8(path)}"),
    ):
        with unpacked(path) as content:
            start = content.read(START).removeprefix(codecs.BOM_UTF8).lstrip()
        if start.startswith((b"{", b"[")):
            return None
        with _lines(path) as lines:
            filled = (line for line in islice(lines, BLANK_LINES) if line.strip())
            top_line = next(filled, "")
            line_below = next(filled, "")
        if not top_line:
            raise InputError(f"{path}: is empty; {EXPECTED}")
        separator = max(SEPARATORS, key=top_line.count)
        if separator not in top_line:
            separator = " "
        first = [cell.strip() for cell in _cells(top_line, separator)]
        second = [cell.strip() for cell in _cells(line_below, separator)]
        if _is_run(top_line, first, path):
            return None
        if appearance.FEWEST_COLUMNS <= len(first) <= appearance.MOST_COLUMNS:
            with _lines(path) as lines:
                _refuse_other_columns(lines, separator, path)
        with _lines(path) as lines:
            return _matrix(lines, separator, first, second, path)


def _why_no_text(path: Path) -> str:
    """What a file is that does not begin like text in UTF-8; "" for one that does."""
    with (
        refusing(OSError, lambda error: f"cannot read {path}: {first_line(error)}"),
        unpacked(path) as content,
    ):
        start = content.read(START)
        packed = not (isinstance(content, io.BufferedReader) and isinstance(content.raw, io.FileIO))
    in_utf16 = regular.in_utf16(path, start)
    if in_utf16:
        return in_utf16
    if packed and start.startswith(BINARY):
        return "is another file that gzip packed; unpack it with gunzip"
    if packed and start[257:262] == b"ustar":
        return "is a tar archive that gzip packed; unpack it with tar -xzf"
    if not regular.CONTROL.search(start):
        return ""
    size = path.stat().st_size
    numbers = "numbers, save them with numpy.save"
    if size % 4 == 0 and not packed:
        numbers = (
            f"{size // 4:,} float32 or {size // 8:,} float64 numbers as tofile and numpy.memmap write "
            f"them, numpy.save('scores.npy', numpy.memmap({path.name!r}, 'float32', 'r', "
            "shape=(IMAGES, CAPTIONS)))"
        )
    return f"is neither text nor a file that says what it holds; if it is {numbers}"


@contextmanager
def _lines(path: Path) -> Iterator[Iterator[str]]:
    """Open a file of text, plain or packed, for its lines of limited length."""
    with unpacked(path) as content, io.TextIOWrapper(content, "utf-8-sig") as file:
        yield _checked(file, path)


def _checked(file: io.TextIOWrapper, path: Path) -> Iterator[str]:
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise InputError(
                f"{path}: has a line of {LONGEST_LINE:,} characters or more; save the matrix as .npy"
            )
        if "\0" in line:
            raise InputError(f"{path}: is no text in UTF-8: it has NUL characters; {EXPECTED}")
        yield line


def _cells(line: str, separator: str) -> list[str]:
    """The cells of a line, which a quotation does not go beyond."""
    if separator == " ":
        return line.split()
    text = line.rstrip("\r\n")
    if not text:
        return []
    if '"' not in text:
        return text.split(separator)
    return next(csv.reader([text], delimiter=separator, strict=True), [])


def _is_run(line: str, cells: Sequence[str], path: Path) -> bool:
    if len(cells) > 3 and all(map(_is_number, cells)):  # TREC's second column is Q0
        return False
    try:
        return bool(recognised(line.strip(), path, RUN))
    except InputError:
        return False


def _refuse_other_columns(lines: Iterator[str], separator: str, path: Path) -> None:
    """Refuse rows of queries, candidates and scores in other columns, which are no matrix."""
    with_text = filter(str.strip, takewhile(_is_short, lines))
    rows = []
    for line in islice(with_text, appearance.ROWS):
        rows.append([cell.strip() for cell in _cells(line, separator)])
    if not rows:
        return
    _refuse_pairs(rows, "", path)
    has_header = not all(map(_is_number, rows[0]))
    if has_header:
        _refuse_pairs(rows[1:], f" below {', '.join(rows[0])[:80]}", path)


def _refuse_pairs(rows: Sequence[list[str]], below: str, path: Path) -> None:
    """Refuse rows that look as those of a run. below: the header, for the message."""
    if len({len(row) for row in rows}) != 1:
        return
    seen = appearance.columns(rows)
    if appearance.are_pairs(seen, len(rows)):
        raise InputError(
            f"{path}: looks like a run of other columns{below}: {appearance.described(seen)}; give it "
            "a header, such as query,candidate,score or query,candidate,rank"
        )


def _is_short(line: str) -> bool:
    return len(line) < LONGEST_PAIR


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _matrix(
    lines: Iterator[str], separator: str, first: list[str], second: list[str], path: Path
) -> Arrays:
    """A matrix, with ids where its first row and column have them."""
    has_header = not all(map(_is_number, first)) or _numbers_columns(first, second)
    without_corner = len(second) == len(first) + 1  # as R writes a header
    has_names = has_header and (without_corner or not _is_number(first[0]))
    names, values = _numbers(lines, separator, has_header, has_names, path)
    header: list[str] = []
    corner = ""
    where = ""
    if has_header:
        header = first
        corner = first[0].lower().replace("-", "_")
        where = ", ids in the first row"
    if has_names:
        where += " and column"
    if has_names and not without_corner:
        header = header[1:]
    if has_header and len(header) != values.shape[1]:
        raise InputError(
            f"{path}: has {values.shape[1]} numbers in a row below {len(header)} columns; {EXPECTED}"
        )
    of_rows = "image"
    ids = {"image_ids": names, "caption_ids": header}
    if corner in (*SPELT["caption"], *SPELT["query"]):
        of_rows = "caption"
        ids = {"image_ids": header, "caption_ids": names}
        values = values.T
    arrays = {"": Array.of(values)}
    expansion = Expansion(path)
    for name, texts in ids.items():
        if texts:
            arrays[name] = Array.of(expansion.texts(texts))
    return Arrays(f"a table with a row for each {of_rows}{where}", arrays)


def _numbers_columns(first: list[str], second: list[str]) -> bool:
    """Whether a first row of numbers is a header: different whole numbers, and the next row has
    others.
    """
    are_whole = all(map(str.isdigit, first))
    are_different = len({*first}) == len(first)
    return are_whole and are_different and not all(map(str.isdigit, second))


def _numbers(
    lines: Iterator[str], separator: str, has_header: bool, has_names: bool, path: Path
) -> tuple[list[str], np.ndarray]:
    """The names in the first column, if it has them, and the numbers of all rows."""
    names: list[str] = []
    rows: list[np.ndarray] = []
    expansion = Expansion(path)
    for place, cells in enumerate(_rows(lines, separator, expansion), start=1):
        if place == 1 and has_header:
            continue
        if has_names:
            names.append(cells.pop(0).strip())
        try:
            rows.append(np.array(cells, np.float64))
        except ValueError:
            wrong = next(cell for cell in cells if not _is_number(cell))
            raise InputError(
                f"{path}: row {place} holds {wrong[:40]!a}, which is no number; {EXPECTED}"
            ) from None
        if len(rows[-1]) != len(rows[0]):
            raise InputError(
                f"{path}: row {place} has {len(rows[-1])} numbers, the first {len(rows[0])}: is it cut "
                "short?"
            )
    if not rows:
        raise InputError(f"{path}: has no row below its first; {EXPECTED}")
    return names, np.stack(rows)


def _rows(lines: Iterator[str], separator: str, expansion: Expansion) -> Iterator[list[str]]:
    """The cells of each line that is not blank; the blank ones count, too."""
    for line in lines:
        cells = _cells(line, separator)
        expansion.take(ROW + 8 * len(cells))
        if cells:
            yield cells


def read_parquet(path: Path) -> Arrays | None:
    """Read a matrix of Parquet, whose columns are captions; None for a run, which has a row for
    each pair.
    """

    def damaged(error: Exception) -> str:
        return f"{path}: is damaged, cut short or no Parquet file ({first_line(error)})"

    with refusing(Exception, damaged):  # pyarrow raises many kinds
        expansion = Expansion(path)
        file = typed_columns.opened(path, expansion)
        names = file.schema_arrow.names
    try:
        recognised("\t".join(names), path, RUN, headless=False)
        return None
    except InputError:
        pass  # a row for each image
    size = 8 * file.metadata.num_rows * len(names)
    if size > LARGEST:
        raise InputError(
            f"{path}: has {size:,} bytes of cells, more than {LARGEST:,}; save the matrix as .npy"
        )
    with refusing(Exception, damaged):
        table = file.read()
        columns = {name: typed_columns.decoded(table[name], expansion) for name in names}
    return _of_columns(columns, path, expansion)


def _of_columns(columns: dict[str, Any], path: Path, expansion: Expansion) -> Arrays:
    import pyarrow as pa

    texts = [
        name
        for name, column in columns.items()
        if typed_columns.is_text(column.type) or name.lower() in IMAGES
    ]
    scores = [name for name in columns if name not in texts]
    are_numbers = all(
        pa.types.is_floating(columns[name].type) or pa.types.is_integer(columns[name].type)
        for name in scores
    )
    if len(texts) > 1 or not scores or not are_numbers:
        raise InputError(f"{path}: has the columns {', '.join(columns)[:200]}; {EXPECTED}")
    read = [(f"{path}: column {name}", columns[name].to_numpy()) for name in scores]
    dtype = np.result_type(*(values.dtype for _, values in read))
    if dtype.kind == "f":  # fractions in one column make all columns floats
        for what, values in read:
            typed_columns.as_floats(values, what)
    matrix = np.stack([values for _, values in read], axis=1)
    arrays = {"": Array.of(matrix)}
    if scores != [str(number) for number in range(len(scores))]:
        arrays["caption_ids"] = Array.of(expansion.texts(scores))
    for name in texts:
        ids = typed_columns.ids(columns[name], f"{path}: column {name}")
        if typed_columns.is_text(ids.type):
            values = expansion.texts(ids.to_pylist())
        else:
            values = ids.to_numpy()
        arrays["image_ids"] = Array.of(values)
    return Arrays("a Parquet table with a row for each image", arrays)
