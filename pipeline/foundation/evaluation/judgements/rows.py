"""Files of judgements and runs as tables of text, read piece by piece; packed with gzip or not."""

import csv
import io
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation.evaluation.judgements import (
    columns as recognising,
    layouts,
    typed_columns,
)
from pipeline.foundation.evaluation.judgements.columns import Columns, Kind
from pipeline.foundation.evaluation.judgements.names import (
    CAPTION,
    IMAGE,
    UNKNOWN,
    Column,
    Names,
    by_sides,
)
from pipeline.foundation.evaluation.retrieval import Collection, Floats, Ids, Marks, Relevance
from pipeline.foundation.evaluation.statistics.intervals import Languages
from pipeline.foundation.files import long_json, parsing, regular
from pipeline.foundation.files.expansion import Expansion, unpacked
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.parts.errors import InputError, first_line, refusing

# Columns by their names.
Table = Mapping[str, Column]
# Bytes that are read at once, and of a line.
PIECE = 4_000_000
LONGEST_LINE = 100_000
# Characters of JSON that are read at once, and of a query with its candidates.
PART = 1 << 20
LONGEST_QUERY = 1 << 25
# Pairs that become a table.
PAIRS = 1 << 16
START = 1 << 16  # bytes in which a form is recognised: an id may be a query's whole text
CODES = 1 << 10  # bytes in which UTF-16 is recognised
ROW = 48  # bytes of a row of numbers, while rows are joined
BOM = b"\xef\xbb\xbf"
IDS = ("query", "document", "image", "caption")
NO_ID = "an id of no image or caption"
BLANKS = bytes.maketrans(b"\t\r\f\v", b"    ")
SHOWN = (*IDS, "grade", "score")  # what messages show of a row


@dataclass
class Rows:
    """The rows of a file as text, piece by piece."""

    path: Path
    kind: Kind
    parts: Sequence[str] = ()  # What the user types behind the file, to choose in a `Layout`
    title: str = ""  # What the file was recognised as; "" before its first piece
    value: str = ""  # How the file calls the column of values; "" if it does not
    headless: bool = False  # Whether the columns have no names in the file
    left_out: LeftOut = field(default_factory=lambda: LeftOut("row"))  # Rows that cannot be used
    count: int = 0  # How many rows were read, with those that are left out
    unanswered: list[str] = field(default_factory=list)  # Queries whose list is there and empty
    example: str = ""  # The first candidate as the file writes it
    others: list[layouts.Other] = field(default_factory=list)  # What else a layout's file holds

    def tables(self) -> Iterator[tuple[Table, Ids]]:
        """The rows, each with its number in the file, from 1; a header and blank rows do not
        count.
        """
        tables = self._of_form(self._start())
        expansion = Expansion(self.path)
        for table, numbers in tables:
            expansion.take(ROW * len(numbers))
            if not self.example and len(numbers):
                candidate = recognising.DOCUMENT if recognising.DOCUMENT in table else "image"
                self.example = _text(table[candidate][0])
            yield table, numbers
        if not self.count:
            raise InputError(f"{self.path}: is empty, expected {self.kind.expected}")
        with refusing(InputError, lambda error: f"{self.path}: {error}"):
            self.left_out.check(self.count)

    @property
    def layout(self) -> type[layouts.Layout] | None:
        """The layout of a tool, if the file has one."""
        return self._layout(self._start())

    def _layout(self, start: bytes) -> type[layouts.Layout] | None:
        return layouts.of_start(layouts.OF_NOUN[self.kind.noun], start)

    def _start(self) -> bytes:
        """The first bytes, which show the form."""
        with self._readable(), unpacked(self.path) as file:
            return file.read(START).removeprefix(BOM).lstrip()

    def _of_form(self, start: bytes) -> Iterator[tuple[Table, Ids]]:
        layout = self._layout(start)
        has_parts = layout is not None and layout.has_parts
        if self.parts and not has_parts:
            raise InputError(
                f"{self.path}: holds one list of scores; leave out :{':'.join(self.parts)}"
            )
        if layout is not None:
            return self._of_layout(layout(self.path, self.parts))
        if start.startswith(b"PAR1"):
            return self._of_parquet()
        if start.startswith(b"{"):
            return self._of_json()
        if start.startswith(b"["):
            raise InputError(f"{self.path}: is a list in JSON; {self._expected}")
        return self._of_text()

    def _readable(self) -> AbstractContextManager[None]:
        return refusing(
            OSError, lambda error: f"cannot read {self.path}: {error.strerror or error}"
        )

    def _of_text(self) -> Iterator[tuple[Table, Ids]]:
        columns: Columns | None = None
        for piece in self._pieces():
            self._refuse_other_codes(piece, is_first=columns is None)
            body = piece
            if columns is None:
                body = piece.removeprefix(BOM).lstrip(b"\r\n")
                line, _, rest = body.partition(b"\n")
                self._refuse_long(line)
                columns = recognising.recognised(line.decode().rstrip("\r"), self.path, self.kind)
                self.title = columns.title
                self.value = columns.value
                self.headless = not columns.header
                if columns.header:
                    body = rest
            if columns.separator == " ":
                body = _single_blanks(body)
            if body.strip():
                yield self._parsed(body, columns)

    def _refuse_other_codes(self, piece: bytes, is_first: bool) -> None:
        """Refuse text that is not UTF-8, and say in what it is."""
        if is_first:
            utf16 = regular.in_utf16(self.path, piece[:CODES])
            if utf16:
                raise InputError(f"{self.path}: {utf16}")
        unlike_utf8 = f"{self.path}: {regular.unlike_utf8(self.path)}"
        with refusing(UnicodeDecodeError, unlike_utf8):
            piece.decode()

    def _refuse_long(self, line: bytes) -> None:
        if len(line) > LONGEST_LINE:
            raise InputError(
                f"{self.path}: holds a line of more than {LONGEST_LINE} bytes: it is no table"
            )

    def _pieces(self) -> Iterator[bytes]:
        rest = b""
        with self._readable(), unpacked(self.path) as file:
            for piece in iter(lambda: file.read(PIECE), b""):
                lines, newline, rest = (rest + piece).rpartition(b"\n")
                if newline:
                    yield lines + newline
                self._refuse_long(rest)
        if rest.strip():
            yield rest + b"\n"

    def _parsed(self, piece: bytes, columns: Columns) -> tuple[Table, Ids]:
        """The table of a piece's rows that have all columns, and their numbers."""
        cells, widths = self._cells(piece, columns.separator)
        numbers = np.arange(len(widths)) + self.count + 1
        self.count += len(widths)
        width = len(columns.names)
        is_whole = widths == width
        ends = np.cumsum(widths)
        for place in np.flatnonzero(~is_whole).tolist():
            row = columns.separator.join(cells[ends[place] - widths[place] : ends[place]])
            self.left_out.add(f"not {width} columns", f"row {numbers[place]}: {row[:80]}")
        of_whole = np.array(cells, object)[np.repeat(is_whole, widths)]
        table = dict(zip(columns.names, of_whole.reshape(-1, width).T, strict=True))
        return table, numbers[is_whole]

    def _cells(self, piece: bytes, separator: str) -> tuple[list[str], Ids]:
        """The cells of all rows, one row after another, and how many each row has; blank rows are
        left out. One list for all is twice as fast as one for each row.
        """
        if separator in ",;" and b'"' in piece:
            rows = self._quoted(piece, separator)
            return [*chain.from_iterable(rows)], np.array([len(row) for row in rows], np.int64)
        lines = [line for line in piece.splitlines() if line]
        self._refuse_long(max(lines, key=len))
        between = separator.encode()
        widths = [line.count(between) + 1 for line in lines]
        cells = between.join(lines).decode().split(separator)
        return cells, np.array(widths, np.int64)

    def _quoted(self, piece: bytes, separator: str) -> list[list[str]]:
        """The rows of a piece with quotation marks, in which a cell may hold separators."""

        def cannot_parse(error: Exception) -> str:
            first = self.count + 1
            return f"{self.path}: from row {first} on: {error}; expected {self.kind.expected}"

        lines = io.StringIO(piece.decode(), newline="")
        with refusing(csv.Error, cannot_parse):
            return [row for row in csv.reader(lines, delimiter=separator, strict=True) if row]

    def _of_parquet(self) -> Iterator[tuple[Table, Ids]]:
        """The rows of Parquet; a cell may hold a list of the best candidates, and one their
        scores.
        """
        import pyarrow as pa

        def damaged(error: Exception) -> str:
            reason = first_line(error)
            return f"{self.path}: is damaged, cut short or no Parquet file ({reason})"

        def cannot_read(error: Exception) -> str:
            return f"{self.path}: {first_line(error)}; expected {self.kind.expected}"

        expansion = Expansion(self.path)
        with refusing(Exception, damaged):  # pyarrow raises many kinds
            file = typed_columns.opened(self.path, expansion)
            names = file.schema_arrow.names
        expansion.require(ROW * file.metadata.num_rows)
        columns = recognising.recognised("\t".join(names), self.path, self.kind, headless=False)
        own_names = dict(zip(columns.names, names, strict=True))
        (value,) = self.kind.value
        self.title = columns.title.replace(" with a header, tabs between columns", " in Parquet")
        self.value = columns.value
        with refusing(pa.ArrowException, cannot_read):
            read = 0
            for batch in file.iter_batches(1 << 18):
                coded = pa.Table.from_batches([batch]).rename_columns(columns.names)
                texts = {}
                for name in columns.names:
                    texts[name] = typed_columns.decoded(coded[name], expansion)
                with refusing(InputError, lambda error: f"{self.path}: {error}"):
                    table = typed_columns.in_rows(pa.table(texts), own_names, read + 1, value)
                    read_columns = self._read_columns(table, own_names)
                read += len(batch)
                yield read_columns, np.arange(len(table)) + self.count + 1
                self.count += len(table)

    def _read_columns(self, table: Any, spelt: Mapping[str, str]) -> Table:
        """The columns of ids and numbers of a table without lists.

        spelt: what the file calls each column.
        """
        (value,) = self.kind.value
        numbers = (value, *self.kind.ranks)
        columns = {}
        for name in table.column_names:
            what = f"its column {spelt[name]}"
            if name in IDS:
                columns[name] = typed_columns.as_array(typed_columns.ids(table[name], what))
            elif name in numbers and typed_columns.is_text(table[name].type):
                columns[name] = typed_columns.as_array(table[name])
            elif name in numbers:
                values = typed_columns.numbers(table[name], what)
                columns[name] = typed_columns.as_floats(values, what)
        return columns

    def _of_layout(self, layout: layouts.Layout) -> Iterator[tuple[Table, Ids]]:
        """The rows of a tool's own layout."""
        rows: list[layouts.Row] = []
        with (
            refusing(ValueError, lambda error: f"{self.path}: {error}"),
            refusing(UnicodeDecodeError, f"{self.path}: {regular.unlike_utf8(self.path)}"),
            self._text() as text,
        ):
            for row in layout.rows(text):
                rows.append(row)
                if len(rows) > PAIRS:
                    self.title = layout.title
                    yield self._of_pairs(rows, layout.value)
                    rows = []
            self.title = layout.title
        self.value = layout.value
        self.unanswered = layout.unanswered
        self.others = layout.others
        if rows:
            yield self._of_pairs(rows, layout.value)

    def _of_json(self) -> Iterator[tuple[Table, Ids]]:
        """The rows of {query: {document: value}}, or of {query: [document]} for judgements."""
        (self.value,) = self.kind.value
        self.title = f"{self.kind.noun} in JSON, query: document: {self.value}"
        queries = set[str]()
        rows = list[tuple[str, str, str]]()
        with (
            refusing(ValueError, lambda error: f"{self.path}: not readable as JSON: {error}"),
            refusing(UnicodeDecodeError, f"{self.path}: {regular.unlike_utf8(self.path)}"),
        ):
            for query, listed in self._members():
                if query in queries:
                    raise ValueError(f"has {query[:40]!a} twice in an object")
                queries.add(query)
                of_query = [*self._of_query(query, listed)]
                if not of_query:
                    self.unanswered.append(query)
                rows += of_query
                if len(rows) > PAIRS:
                    yield self._of_pairs(rows, self.value)
                    rows = []
        if rows:
            yield self._of_pairs(rows, self.value)

    @property
    def _expected(self) -> str:
        (value,) = self.kind.value
        return f"expected JSON, query: document: {value}"

    @contextmanager
    def _text(self) -> Iterator[Iterator[str]]:
        """Open the file as text, in pieces."""
        with (
            self._readable(),
            unpacked(self.path) as file,
            io.TextIOWrapper(file, "utf-8-sig") as text,
        ):
            yield iter(lambda: text.read(PART), "")

    def _members(self) -> Iterator[tuple[str, Any]]:
        with self._text() as text:
            yield from long_json.members(text, longest=LONGEST_QUERY)

    def _of_query(self, query: str, listed: Any) -> Iterator[tuple[str, str, str]]:
        """The rows of one query."""
        values = listed
        if isinstance(listed, list) and not self.kind.needs_value:
            values = dict.fromkeys(map(str, listed), 1)
        elif _is_list_of_pairs(listed):
            values = parsing.of_pairs([(str(document), score) for document, score in listed])
        if not _is_flat(values):
            given = ascii(reprlib.repr({query: values}))[1:-1]  # of any depth and length
            raise InputError(f"{self.path}: {self._expected}, got {given[:80]}")
        for document, value in values.items():
            yield query, document, str(value)

    def _of_pairs(self, rows: list[layouts.Row], value: str) -> tuple[Table, Ids]:
        columns = {}
        for place, name in enumerate((recognising.QUERY, recognising.DOCUMENT, value)):
            columns[name] = np.array([row[place] for row in rows], object)
        numbers = np.arange(self.count, self.count + len(rows)) + 1
        self.count += len(rows)
        return columns, numbers

    def pairs(self, table: Table, numbers: Ids, names: Names) -> tuple[Ids, Ids, Marks, Marks]:
        """The ids of images and captions, and bool [n] each: where the image is the query, and what
        can be used.
        """
        if "image" in table:
            image, image_side = names.of(table["image"])
            caption, caption_side = names.of(table["caption"])
            asks = np.zeros(len(numbers), bool)
            wrong = (image_side == CAPTION) | (caption_side == IMAGE)
        else:
            queries = names.of(table["query"])
            documents = names.of(table["document"])
            image, caption, asks, wrong = by_sides(queries, documents)
        if wrong.any():
            texts = _texts(table, np.argmax(wrong))
            raise InputError(
                f"{self.path}: row {numbers[wrong][0]} pairs two of a kind: "
                f"{texts}; name an image and a caption"
            )
        usable = (image != UNKNOWN) & (caption != UNKNOWN)
        if not usable.all() and not names.by_file and names.collection is not None:
            texts = _texts(table, np.argmin(usable))
            raise InputError(
                f"{self.path}: row {numbers[~usable][0]}: {texts} has no "
                "valid id; expected whole numbers, image:12 and caption:55, or with --manifest images' "
                "files"
            )
        self.leave_out(NO_ID, table, numbers, ~usable)
        return image, caption, asks, usable

    def values(self, table: Table) -> tuple[Floats, Marks]:
        """The column of values, float64 [n], 1 where there is none; and which are finite numbers,
        bool [n].
        """
        (name,) = self.kind.value
        if name not in table:
            count = len(table[next(iter(table))])
            return np.ones(count), np.ones(count, bool)
        values = self._numbers(table, name)
        return values, np.isfinite(values)

    def ranks(self, table: Table) -> Floats | None:
        """The column of ranks, float64 [n], NaN for what is no number; None where there is none."""
        for name in self.kind.ranks:
            if name in table:
                return self._numbers(table, name)
        return None

    def _numbers(self, table: Table, name: str) -> Floats:
        column = table[name]
        if column.dtype.kind == "f":
            return column
        texts = column.tolist()
        try:
            values = np.fromiter(map(float, texts), np.float64, len(texts))
        except ValueError:
            values = np.fromiter(map(_number, texts), np.float64, len(texts))
        typed_columns.refuse_rounded(column, values, f"{self.path}: its column {name}")
        return values

    def of_pair(self, image: int, caption: int, names: Names) -> str:
        """The rows of one pair as the file writes them, for a message. Reads the file again."""
        shown = []
        for table, numbers in Rows(self.path, self.kind, self.parts).tables():
            images, captions, _, _ = self.pairs(table, numbers, names)
            is_pair = (images == image) & (captions == caption)
            for row in np.flatnonzero(is_pair).tolist():
                shown.append(f"row {numbers[row]}: {_texts(table, row)}")
        return " and ".join(shown[:2])

    def leave_out(self, reason: str, table: Table, numbers: Ids, wrong: Marks) -> None:
        """Leave out the rows that are wrong."""
        for row in np.flatnonzero(wrong).tolist():
            self.left_out.add(reason, f"row {numbers[row]}: {_texts(table, row)}")


def _single_blanks(body: bytes) -> bytes:
    """Text with one blank between columns, and none around them."""
    body = body.translate(BLANKS)
    while b"  " in body:
        body = body.replace(b"  ", b" ")
    return body.replace(b" \n", b"\n").replace(b"\n ", b"\n").lstrip(b" ")


def _is_list_of_pairs(listed: Any) -> bool:
    if not isinstance(listed, list):
        return False
    return all(isinstance(pair, list) and len(pair) == 2 for pair in listed)


def _is_flat(listed: Any) -> bool:
    """Whether it maps documents to values that hold nothing themselves."""
    if not isinstance(listed, Mapping):
        return False
    return not any(isinstance(value, Mapping | list) for value in listed.values())


def _texts(table: Table, row: Any) -> str:
    texts = []
    for name in SHOWN:
        if name in table:
            texts.append(_text(table[name][int(row)]))
    return " ".join(texts)


def _text(cell: Any) -> str:
    """A cell as a message shows it."""
    return ascii(str(cell)[:40])[1:-1]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def texts_of(collection: Collection, languages: Languages | None = None) -> Ids:
    """Number the different texts of captions, in the order of their first captions: int64 [C]."""
    if collection.captions is None:
        raise InputError(
            "captions are compared by their text, which is not known: name the --manifest"
        )
    of_captions = [""] * len(collection.captions)
    if languages is not None:
        of_captions = languages.tolist()
    number: dict[tuple[str, str], int] = {}
    texts = []
    for language, caption in zip(of_captions, collection.captions, strict=True):
        text = (language, caption.strip())
        texts.append(number.setdefault(text, len(number)))
    return np.array(texts, np.int64)


def same_text(collection: Collection, languages: Languages | None = None) -> tuple[Ids, Relevance]:
    """Merge captions with the same text: the columns that stay, int64 [T] ascending, and their
    relevance, [I, T].
    """
    text = texts_of(collection, languages)
    owner = collection.caption_image
    first_of_text = np.unique(text, return_index=True)[1]
    known = np.flatnonzero(owner >= 0)
    texts, images = np.unique(np.stack([text[known], owner[known]]), axis=1)
    shape = (len(collection.image_ids), len(first_of_text))
    relevance = Relevance.of_pairs(images, texts, shape, owner=owner[first_of_text])
    return first_of_text, relevance
