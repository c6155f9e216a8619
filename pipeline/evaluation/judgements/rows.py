"""Files of judgements and runs as tables of text, read piece by piece; packed with gzip or not."""

import io
import reprlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.evaluation.judgements import columns as recognising, typed_columns
from pipeline.evaluation.judgements.columns import Columns, Kind
from pipeline.evaluation.judgements.names import CAPTION, IMAGE, UNKNOWN, Names, by_sides
from pipeline.evaluation.retrieval import Collection, Floats, Ids, Marks, Relevance
from pipeline.evaluation.statistics.intervals import Languages
from pipeline.files import encodings, long_json, parsing
from pipeline.files.expansion import Expansion, unpacked
from pipeline.files.left_out import LeftOut
from pipeline.parts.errors import InputError, first_line, refusing

if TYPE_CHECKING:
    import pyarrow as pa

PIECE, LONGEST_LINE = 16_000_000, 100_000  # bytes
# Characters of JSON that are read at once, and of a query with its candidates; pairs that become a
# table.
PART, LONGEST_QUERY, PAIRS = 1 << 20, 1 << 25, 1 << 16
START = 1 << 10  # bytes in which a form is recognised
ROW = 48  # bytes of a row of numbers, while rows are joined
BOM = b"\xef\xbb\xbf"
IDS = ("query", "document", "image", "caption")
NO_ID = "an id of no image or caption"
BLANKS = bytes.maketrans(b"\t\r\f\v", b"    ")


@dataclass
class Rows:
    """The rows of a file as text, piece by piece."""

    path: Path
    kind: Kind
    title: str = ""  # What the file was recognised as; "" before its first piece
    value: str = ""  # How the file calls the column of values; "" if it does not
    headless: bool = False  # Whether the columns have no names in the file
    left_out: LeftOut = field(default_factory=lambda: LeftOut("row"))  # Rows that cannot be used
    count: int = 0  # How many rows were read, with those that are left out

    def tables(self) -> "Iterator[tuple[pa.Table, Ids]]":
        """The rows, each with its number in the file, from 1; a header and blank rows do not
        count.
        """
        with self._readable(), unpacked(self.path) as file:
            start = file.read(START).removeprefix(BOM).lstrip()
        tables, expansion = self._of_text(), Expansion(self.path)
        if start.startswith(b"PAR1"):
            tables = self._of_parquet()
        elif start.startswith(b"{"):
            tables = self._of_json()
        elif start.startswith(b"["):
            raise InputError(f"{self.path}: is a list in JSON; {self._expected}")
        for table, numbers in tables:
            expansion.take(ROW * len(table))
            yield table, numbers
        if not self.count:
            raise InputError(f"{self.path}: is empty, expected {self.kind.expected}")
        with refusing(InputError, lambda error: f"{self.path}: {error}"):
            self.left_out.check(self.count)

    def _readable(self) -> AbstractContextManager[None]:
        return refusing(
            OSError, lambda error: f"cannot read {self.path}: {error.strerror or error}"
        )

    def _of_text(self) -> "Iterator[tuple[pa.Table, Ids]]":
        columns: Columns | None = None
        for piece in self._pieces():
            if columns is None and (what := encodings.in_utf16(self.path, piece[:START])):
                raise InputError(f"{self.path}: {what}")
            unlike_utf8 = f"{self.path}: {encodings.unlike_utf8(self.path)}"
            with refusing(UnicodeDecodeError, unlike_utf8):  # pyarrow prints it and goes on
                piece.decode()
            body = piece
            if columns is None:
                body = piece.removeprefix(BOM).lstrip(b"\r\n")
                line, _, rest = body.partition(b"\n")
                self._refuse_long(line)
                columns = recognising.recognised(line.decode().rstrip("\r"), self.path, self.kind)
                self.title, self.value = columns.title, columns.value
                self.headless, body = not columns.header, rest if columns.header else body
            if columns.separator == " ":  # one blank between columns, and none around them
                body = body.translate(BLANKS)
                while b"  " in body:
                    body = body.replace(b"  ", b" ")
                body = body.replace(b" \n", b"\n").replace(b"\n ", b"\n").lstrip(b" ")
            if body.strip():
                yield self._parsed(body, columns)

    def _refuse_long(self, line: bytes) -> None:
        if len(line) > LONGEST_LINE:
            raise InputError(
                f"{self.path}: holds a line of more than {LONGEST_LINE} bytes: it is no table"
            )

    def _pieces(self) -> Iterator[bytes]:
        rest = b""
        with self._readable(), unpacked(self.path) as file:
            while piece := file.read(PIECE):
                lines, newline, rest = (rest + piece).rpartition(b"\n")
                if newline:
                    yield lines + newline
                self._refuse_long(rest)
        if rest.strip():
            yield rest + b"\n"

    def _parsed(self, piece: bytes, columns: Columns) -> "tuple[pa.Table, Ids]":
        import pyarrow as pa
        from pyarrow import csv

        damaged: list[int] = []

        def leave_out(row: Any) -> str:
            damaged.append(row.number)
            self.left_out.add(
                f"not {row.expected_columns} columns",
                f"row {self.count + row.number}: {row.text[:80]}",
            )
            return "skip"

        with refusing(
            pa.ArrowInvalid,
            lambda error: (
                f"{self.path}: from row {self.count + 1} on: "
                f"{ascii(first_line(error))[1:-1]}; expected {self.kind.expected}"
            ),
        ):
            table = csv.read_csv(
                pa.BufferReader(piece),
                csv.ReadOptions(column_names=columns.names, use_threads=False),
                csv.ParseOptions(
                    delimiter=columns.separator,
                    quote_char='"' if columns.separator in ",;" else False,
                    invalid_row_handler=leave_out,
                ),
                csv.ConvertOptions(column_types=dict.fromkeys(columns.names, pa.string())),
            )
        numbers = (
            np.delete(np.arange(len(table) + len(damaged)), np.array(damaged, np.int64) - 1)
            + self.count
            + 1
        )
        self.count += len(table) + len(damaged)
        return table, numbers

    def _of_parquet(self) -> "Iterator[tuple[pa.Table, Ids]]":
        """The rows of Parquet; a cell may hold a list of the best candidates, and one their
        scores.
        """
        import pyarrow as pa

        expansion = Expansion(self.path)
        with refusing(
            Exception,
            lambda error: (
                f"{self.path}: is damaged, cut short or no Parquet file ({first_line(error)})"
            ),
        ):  # pyarrow raises many kinds
            file = typed_columns.opened(self.path, expansion)
            names = file.schema_arrow.names
        expansion.require(ROW * file.metadata.num_rows)
        columns = recognising.recognised("\t".join(names), self.path, self.kind, headless=False)
        self.title = columns.title.replace(" with a header, tabs between columns", " in Parquet")
        self.value = columns.value
        with refusing(
            pa.ArrowException,
            lambda error: f"{self.path}: {first_line(error)}; expected {self.kind.expected}",
        ):
            read = 0
            for batch in file.iter_batches(1 << 18):
                held = pa.Table.from_batches([batch]).rename_columns(columns.names)
                table = pa.table(
                    {name: typed_columns.decoded(held[name], expansion) for name in columns.names}
                )
                with refusing(InputError, lambda error: f"{self.path}: {error}"):
                    table = self._as_rows(table, names, read + 1)
                read += len(batch)
                yield table, np.arange(len(table)) + self.count + 1
                self.count += len(table)

    def _as_rows(self, table: "pa.Table", spelt: list[str], first: int) -> "pa.Table":
        """A table with ids and numbers in its cells, and no lists.

        spelt: the columns' own names. first: the number of its first row.
        """
        own_names = dict(zip(table.column_names, spelt, strict=True))
        (value,) = self.kind.value
        numbers = (value, *self.kind.ranks)
        table = typed_columns.in_rows(table, own_names, first, value)
        for at, name in enumerate(table.column_names):
            what = f"its column {own_names[name]}"
            if name in IDS:
                table = table.set_column(at, name, typed_columns.ids(table[name], what))
            elif name in numbers and not typed_columns.is_text(table[name].type):
                read = typed_columns.numbers(table[name], what)
                table = table.set_column(at, name, [typed_columns.as_floats(read, what)])
        return table

    def _of_json(self) -> "Iterator[tuple[pa.Table, Ids]]":
        """The rows of {query: {document: value}}, or of {query: [document]} for judgements."""
        (self.value,) = self.kind.value
        self.title = f"{self.kind.noun} in JSON, query: document: {self.value}"
        queries, rows = set[str](), list[tuple[str, str, str]]()
        with (
            refusing(ValueError, lambda error: f"{self.path}: not readable as JSON: {error}"),
            refusing(UnicodeDecodeError, f"{self.path}: {encodings.unlike_utf8(self.path)}"),
        ):
            for query, listed in self._members():
                if query in queries:
                    raise ValueError(f"has {query[:40]!a} twice in an object")
                queries.add(query)
                rows += self._of_query(query, listed)
                if len(rows) > PAIRS:
                    yield self._of_pairs(rows)
                    rows = []
        if rows:
            yield self._of_pairs(rows)

    @property
    def _expected(self) -> str:
        return f"expected JSON, query: document: {next(iter(self.kind.value))}"

    def _members(self) -> Iterator[tuple[str, Any]]:
        with (
            self._readable(),
            unpacked(self.path) as file,
            io.TextIOWrapper(file, "utf-8-sig") as text,
        ):
            parts = iter(lambda: text.read(PART), "")
            yield from long_json.members(parts, longest=LONGEST_QUERY)

    def _of_query(self, query: str, listed: Any) -> Iterator[tuple[str, str, str]]:
        """The rows of one query."""
        if isinstance(listed, list) and not self.kind.needs_value:
            listed = dict.fromkeys(map(str, listed), 1)
        elif isinstance(listed, list) and all(
            isinstance(each, list) and len(each) == 2 for each in listed
        ):
            listed = parsing.of_pairs([(str(document), score) for document, score in listed])
        if not isinstance(listed, Mapping) or any(
            isinstance(each, Mapping | list) for each in listed.values()
        ):
            given = ascii(reprlib.repr({query: listed}))[1:-1]  # of any depth and length
            raise InputError(f"{self.path}: {self._expected}, got {given[:80]}")
        for document, each in listed.items():
            yield query, document, str(each)

    def _of_pairs(self, rows: list[tuple[str, str, str]]) -> "tuple[pa.Table, Ids]":
        import pyarrow as pa

        names = (recognising.QUERY, recognising.DOCUMENT, *self.kind.value)
        columns = zip(*rows, strict=True)
        table = pa.table(
            {
                name: pa.chunked_array([list(column)], pa.string())
                for name, column in zip(names, columns, strict=True)
            }
        )
        self.count += len(rows)
        return table, np.arange(self.count - len(rows), self.count) + 1

    def pairs(self, table: "pa.Table", numbers: Ids, names: Names) -> tuple[Ids, Ids, Marks, Marks]:
        """The ids of images and captions, and bool [n] each: where the image is the query, and what
        can be used.
        """
        first, second = (
            ("image", "caption") if "image" in table.column_names else ("query", "document")
        )
        one, other = names.of(table[first]), names.of(table[second])
        if first == "image":
            image, caption, asks = one[0], other[0], np.zeros(len(table), bool)
            wrong = (one[1] == CAPTION) | (other[1] == IMAGE)
        else:
            image, caption, asks, wrong = by_sides(one, other)
        if wrong.any():
            raise InputError(
                f"{self.path}: row {numbers[wrong][0]} pairs two of a kind: "
                f"{_texts(table, np.argmax(wrong))}; name an image and a caption"
            )
        usable = (image != UNKNOWN) & (caption != UNKNOWN)
        if not usable.all() and not names.by_file and names.collection is not None:
            raise InputError(
                f"{self.path}: row {numbers[~usable][0]}: {_texts(table, np.argmin(usable))} has no "
                "valid id; expected whole numbers, image:12 and caption:55, or with --manifest images' "
                "files"
            )
        self.leave_out(NO_ID, table, numbers, ~usable)
        return image, caption, asks, usable

    def values(self, table: "pa.Table") -> tuple[Floats, Marks]:
        """The column of values, float64 [n], 1 where there is none; and which are finite numbers,
        bool [n].
        """
        (name,) = self.kind.value
        if name not in table.column_names:
            return np.ones(len(table)), np.ones(len(table), bool)
        values = self._numbers(table, name)
        return values, np.isfinite(values)

    def ranks(self, table: "pa.Table") -> Floats | None:
        """The column of ranks, float64 [n], NaN for what is no number; None where there is none."""
        name = next(iter(self.kind.ranks), "")
        return self._numbers(table, name) if name in table.column_names else None

    def _numbers(self, table: "pa.Table", name: str) -> Floats:
        import pyarrow as pa
        from pyarrow import compute

        try:
            values: Floats = table[name].cast(pa.float64()).to_numpy()
        except (pa.ArrowInvalid, ValueError):
            texts = compute.utf8_trim_whitespace(table[name]).to_pylist()
            values = np.array([_number(text) for text in texts])
        if not pa.types.is_floating(table[name].type):
            typed_columns.refuse_rounded(table[name], values, f"{self.path}: its column {name}")
        return values

    def leave_out(self, reason: str, table: "pa.Table", numbers: Ids, wrong: Marks) -> None:
        """Leave out the rows that are wrong."""
        for row in np.flatnonzero(wrong).tolist():
            self.left_out.add(reason, f"row {numbers[row]}: {_texts(table, row)}")


def _texts(table: "pa.Table", row: Any) -> str:
    return " ".join(
        ascii(str(table[name][int(row)].as_py() or "")[:40])[1:-1]
        for name in (*IDS, "grade", "score")
        if name in table.column_names
    )


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")


def texts_of(collection: Collection, languages: Languages | None = None) -> Ids:
    """Number the different texts of captions, in the order of their first captions: int64 [C]."""
    if collection.captions is None:
        raise InputError(
            "captions are compared by their text, which is not known: name the --manifest"
        )
    number: dict[tuple[str, str], int] = {}
    of = [""] * len(collection.captions) if languages is None else languages.tolist()
    return np.array(
        [
            number.setdefault((language, caption.strip()), len(number))
            for language, caption in zip(of, collection.captions, strict=True)
        ],
        np.int64,
    )


def same_text(collection: Collection, languages: Languages | None = None) -> tuple[Ids, Relevance]:
    """Merge captions with the same text: the columns that stay, int64 [T] ascending, and their
    relevance, [I, T].
    """
    text = texts_of(collection, languages)
    first_of_text = np.unique(text, return_index=True)[1]
    known = np.flatnonzero(collection.caption_image >= 0)
    pairs = np.unique(np.stack([text[known], collection.caption_image[known]]), axis=1)
    shape = len(collection.image_ids), len(first_of_text)
    return first_of_text, Relevance.of_pairs(
        pairs[1], pairs[0], shape, owner=collection.caption_image[first_of_text]
    )
