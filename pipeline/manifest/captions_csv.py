"""A plain CSV of captions.

Its columns are image, or video, and caption; if there are splits or languages, split and language; and for clips that
are parts of a file start and end, in seconds.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.manifest.reader import Reader, lines_of, table_of_rows
from pipeline.manifest.table import LANGUAGE
from pipeline.parts.errors import InputError, refusing

EXPECTED = "image,caption[,split][,language]"
EXPECTED_OF_CLIPS = "video,caption[,split][,language][,start,end]"


def read(path: Path) -> pd.DataFrame:
    """Read a CSV of captions."""
    lines = csv.reader(lines_of(path), strict=True)
    with refusing(csv.Error, lambda error: f"CSV line 1: {error}"):
        there = next(lines, [])
    if {"image", "video"} <= set(there):
        raise InputError(f"{path}: has both columns image and video; a data set holds one or the other")
    kind = "video" if "video" in there else "image"
    expected = EXPECTED_OF_CLIPS if kind == "video" else EXPECTED
    missing = {kind, "caption"} - set(there)
    if missing:
        raise InputError(f"{path}: the first line has no column {' nor '.join(sorted(missing))}; expected {expected}, "
                         f"separated by commas, got {_shortened(there)}")
    span = [column for column in ("start", "end") if column in there and kind == "video"]
    if len(span) == 1:
        raise InputError(f"{path}: has a column {span[0]} alone; expected {expected}")
    more = [column for column in ("split", LANGUAGE, *span) if column in there]
    rows = _rows(lines, there, [kind, "caption", *more], len(span), expected)
    table = table_of_rows(rows, ["image_id", "file", "caption_id", "caption", *more]).assign(kind=kind)
    for column in span:
        table[column] = [_seconds(text, path) for text in table[column]]
    return table.sort_values("image_id", kind="stable")  # an image's captions may stand apart in the file


def _rows(lines: Any, there: Sequence[str], named: Sequence[str], span: int, expected: str
          ) -> Iterator[tuple[object, ...]]:
    """Read a row from each line that is not empty. The last SPAN of the columns tell clips of a file apart."""
    place = {column: number for number, column in enumerate(there)}
    places = [place[column] for column in named]
    taken, last = itemgetter(*places), max(places)
    numbers: dict[tuple[str, ...], int] = {}
    with refusing(csv.Error, lambda error: f"CSV line {lines.line_num}: {error}"):
        for number, line in enumerate(filter(None, lines)):
            if len(line) > len(there):
                raise InputError(f"CSV line {lines.line_num}: more fields than columns; put quotes round a "
                                 "caption that holds a comma")
            if len(line) <= last or not line[places[0]]:
                raise InputError(f"CSV line {lines.line_num}: expected {expected}, a field is missing")
            file, caption, *rest = taken(line)
            clip = (file, *(text.strip() for text in rest[len(rest) - span:]))
            yield numbers.setdefault(clip, len(numbers)), file, number, caption, *rest


def _seconds(text: str, path: Path) -> float:
    """A time in seconds; NaN for an empty field."""
    try:
        found = float(text) if text.strip() else None
    except ValueError:
        found = math.inf
    if found is not None and not math.isfinite(found):
        raise InputError(f"{path}: expected seconds in the columns start and end, got {text[:40]!a}")
    return math.nan if found is None else found


def _shortened(header: Sequence[str] | None) -> str:
    written = ",".join(header or ())
    return repr(written if len(written) <= 60 else f"{written[:60]}…") if written else "nothing"


READER = Reader(f"a .csv file with columns {EXPECTED} or {EXPECTED_OF_CLIPS}",
                lambda path: path.suffix.lower() == ".csv", read, names_every_image=True)
