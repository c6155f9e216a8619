"""JSON whose rows are objects: a list of them, JSON Lines, a list in an object, or captions by
image in one object.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pipeline.foundation.files import long_json, parsing
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest import table
from pipeline.foundation.manifest.rows.row_file import Batch, RowFile
from pipeline.foundation.manifest.text_file import TextFile, is_text
from pipeline.foundation.parts.errors import InputError, refusing

LOOKED_AT = 100  # objects whose keys are columns
LINES = (".jsonl", ".ndjson", ".jsonlines")
IN_A_LIST = re.compile(r'\s*\{\s*("(?:[^"\\]|\\.)*")\s*:\s*\[\s*\{')
BY_IMAGE = re.compile(r'\s*\{\s*("(?:[^"\\]|\\.)*")\s*:\s*(?:\[\s*)?"')
BY_COLUMN = re.compile(r'\s*\{\s*("(?:[^"\\]|\\.)*")\s*:\s*\{\s*"0"\s*:')
KEY = re.compile(r'"([^"\\]{1,40})"\s*:')
# Keys that are no images' names.
OTHER_KEYS = {
    "images",
    "annotations",
    "info",
    "licenses",
    "categories",
    "data",
    "version",
    "dataset",
}
MANY_LINES = re.compile(r"\s*\{.*\}\s*\n\s*\{")


class JsonRows(RowFile):
    """JSON with an object a row, see `row_file.RowFile`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = TextFile(path)
        self._read, layout = self._layout()
        beginning = [row for _, row in islice(self._rows(LeftOut()), LOOKED_AT)]
        keys = dict.fromkeys(chain.from_iterable(beginning))
        self.names: list[str] = [*keys]
        self.first = []
        if beginning:
            self.first = [beginning[0].get(name) for name in self.names]
        self.title = f"{layout}, {self._file.called}"

    def _layout(self) -> tuple[Any, str]:
        beginning = self._file.beginning()
        if beginning.lstrip()[:1] == "[":
            return self._elements, "JSON, a list of objects"
        if self.path.suffix.lower() in LINES or MANY_LINES.match(beginning):
            return self._lines, "JSON Lines"
        listed = IN_A_LIST.match(beginning)
        if listed is not None:
            key = parsing.from_json(listed[1])
            return lambda left_out: self._member(key), f"JSON, a list of objects in {key!r:.40}"
        named = BY_IMAGE.match(beginning)
        if named is not None and parsing.from_json(named[1]) not in OTHER_KEYS:
            return self._by_image, "JSON, captions by image"
        by_column = BY_COLUMN.match(beginning)
        if by_column is not None:
            raise InputError(
                f"{self.path}: holds the rows of each column in an object, beginning with {by_column[1]}, "
                "as pandas' to_json writes them; write it with orient='records'"
            )
        if re.match(r"\s*\{\s*\n", beginning):
            distinct_keys = [*dict.fromkeys(KEY.findall(beginning))]
            keys = ", ".join(distinct_keys[:8])
            raise InputError(
                f"{self.path}: is a JSON object with the keys {keys[:200] or 'none'}; expected a list "
                "of objects with image and caption, or an object of captions by image"
            )
        return self._lines, "JSON Lines"

    def batches(self, columns: Sequence[int], left_out: LeftOut) -> Iterator[Batch]:
        """Read rows, see `RowFile`."""
        column_names = [self.names[column] for column in columns]
        numbered_rows = self._rows(left_out)
        while True:
            batch = list(islice(numbered_rows, table.AT_ONCE))
            if not batch:
                return
            row_numbers = [number for number, _ in batch]
            rows = [row for _, row in batch]
            yield Batch(row_numbers, [_values(rows, name) for name in column_names])

    def _rows(self, left_out: LeftOut) -> Iterator[tuple[int, dict[str, Any]]]:
        with refusing(ValueError, lambda error: f"{self.path}: not readable as JSON: {error}"):
            for place, row in self._read(left_out):
                if isinstance(row, dict):
                    yield place, row
                else:
                    left_out.add("damaged row", f"{self.path}, row {place}: no object")

    def _elements(self, left_out: LeftOut) -> Iterator[tuple[int, Any]]:
        return enumerate(long_json.elements(self._file.parts()), start=1)

    def _member(self, key: str) -> Iterator[tuple[int, Any]]:
        rows = (row for _, row in long_json.members(self._file.parts(), key))
        return enumerate(rows, start=1)

    def _by_image(self, left_out: LeftOut) -> Iterator[tuple[int, Any]]:
        members = long_json.members(self._file.parts())
        for place, (name, captions) in enumerate(members, start=1):
            yield place, {"image": name, "captions": captions}

    def _lines(self, left_out: LeftOut) -> Iterator[tuple[int, Any]]:
        for place, line in enumerate(self._file.lines("surrogateescape"), start=1):
            if not line.strip():
                continue
            try:
                row = _parsed(line)
            except ValueError as error:
                if place == 1:
                    raise
                left_out.add("damaged row", f"{self.path}, line {place}: {error}")
            else:
                yield place, row


def _parsed(line: str) -> Any:
    """The value of a line that was decoded with surrogateescape; ValueError for no JSON."""
    if not is_text(line):
        raise ValueError("not UTF-8")
    return parsing.from_json(line)


def _values(rows: Sequence[dict[str, Any]], name: str) -> list[Any]:
    """The value that each row has of a name, None for none."""
    return [row.get(name) for row in rows]
