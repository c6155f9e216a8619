"""JSON whose rows are objects: a list of them, JSON Lines, a list in an object, or captions by
image in one object.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pipeline.files import long_json, parsing
from pipeline.files.left_out import LeftOut
from pipeline.manifest import table
from pipeline.manifest.rows.row_file import Batch, RowFile
from pipeline.manifest.text_file import TextFile
from pipeline.parts.errors import InputError, refusing

LOOKED_AT = 100  # objects whose keys are columns
LINES = (".jsonl", ".ndjson", ".jsonlines")
IN_A_LIST = re.compile(r'\s*\{\s*("(?:[^"\\]|\\.)*")\s*:\s*\[\s*\{')
BY_IMAGE = re.compile(r'\s*\{\s*("(?:[^"\\]|\\.)*")\s*:\s*(?:\[\s*)?"')
BY_COLUMN = re.compile(r'\s*\{\s*("(?:[^"\\]|\\.)*")\s*:\s*\{\s*"0"\s*:')
KEY = re.compile(r'"([^"\\]{1,40})"\s*:')
OTHER_KEYS = {
    "images",
    "annotations",
    "info",
    "licenses",
    "categories",
    "data",
    "version",
    "dataset",
}  # no images
MANY_LINES = re.compile(r"\s*\{.*\}\s*\n\s*\{")


class JsonRows(RowFile):
    """JSON with an object a row, see `row_file.RowFile`."""

    def __init__(self, path: Path) -> None:
        self.path, self._file = path, TextFile(path)
        self._read, layout = self._layout()
        beginning = [row for _, row in islice(self._rows(LeftOut()), LOOKED_AT)]
        self.names: list[str] = [*dict.fromkeys(key for row in beginning for key in row)]
        self.first = [beginning[0].get(name) for name in self.names] if beginning else []
        self.title = f"{layout}, {self._file.called}"

    def _layout(self) -> tuple[Any, str]:
        beginning = self._file.beginning()
        if beginning.lstrip()[:1] == "[":
            return self._elements, "JSON, a list of objects"
        if self.path.suffix.lower() in LINES or MANY_LINES.match(beginning):
            return self._lines, "JSON Lines"
        if listed := IN_A_LIST.match(beginning):
            key = parsing.from_json(listed[1])
            return lambda left_out: self._member(key), f"JSON, a list of objects in {key!r:.40}"
        if (named := BY_IMAGE.match(beginning)) and parsing.from_json(named[1]) not in OTHER_KEYS:
            return self._by_image, "JSON, captions by image"
        if by_column := BY_COLUMN.match(beginning):
            raise InputError(
                f"{self.path}: holds the rows of each column in an object, beginning with {by_column[1]}, "
                "as pandas' to_json writes them; write it with orient='records'"
            )
        if re.match(r"\s*\{\s*\n", beginning):
            keys = ", ".join([*dict.fromkeys(KEY.findall(beginning))][:8])
            raise InputError(
                f"{self.path}: is a JSON object with the keys {keys[:200] or 'none'}; expected a list "
                "of objects with image and caption, or an object of captions by image"
            )
        return self._lines, "JSON Lines"

    def batches(self, columns: Sequence[int], left_out: LeftOut) -> Iterator[Batch]:
        """Read rows, see `RowFile`."""
        names, rows = [self.names[column] for column in columns], self._rows(left_out)
        while some := list(islice(rows, table.AT_ONCE)):
            yield Batch(
                [place for place, _ in some], [[row.get(name) for _, row in some] for name in names]
            )

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
        return enumerate((row for _, row in long_json.members(self._file.parts(), key)), start=1)

    def _by_image(self, left_out: LeftOut) -> Iterator[tuple[int, Any]]:
        members = enumerate(long_json.members(self._file.parts()), start=1)
        return (
            (place, {"image": name, "captions": captions}) for place, (name, captions) in members
        )

    def _lines(self, left_out: LeftOut) -> Iterator[tuple[int, Any]]:
        for place, line in enumerate(self._file.lines("surrogateescape"), start=1):
            if line.strip():
                try:
                    line.encode()
                    row = parsing.from_json(line)
                except ValueError as error:  # UnicodeEncodeError is one
                    wrong = "not UTF-8" if isinstance(error, UnicodeEncodeError) else str(error)
                    if place == 1:
                        raise ValueError(wrong) from None
                    left_out.add("damaged row", f"{self.path}, line {place}: {wrong}")
                else:
                    yield place, row
