"""A plain CSV of captions.

Its columns are image, or video, and caption; if there are splits or languages, split and language; and for clips that
are parts of a file start and end, in seconds.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from pipeline.manifest.reader import Reader, text_of
from pipeline.manifest.table import AT_ONCE, LANGUAGE
from pipeline.parts.errors import InputError, refusing

EXPECTED = "image,caption[,split][,language]"
EXPECTED_OF_CLIPS = "video,caption[,split][,language][,start,end]"


def read(path: Path) -> pd.DataFrame:
    """Read a CSV of captions."""
    content = io.BytesIO(text_of(path).encode())  # text as an open file takes four bytes a letter
    lines = csv.DictReader(io.TextIOWrapper(content, "utf-8", newline=None), strict=True)  # None: any line ends
    with refusing(csv.Error, lambda error: f"CSV line 1: {error}"):
        there = list(lines.fieldnames or [])
    if {"image", "video"} <= set(there):
        raise InputError(f"{path}: has both columns image and video; a data set holds one or the other")
    kind = "video" if "video" in there else "image"
    expected = EXPECTED_OF_CLIPS if kind == "video" else EXPECTED
    missing = {kind, "caption"} - set(there)
    if missing:
        raise InputError(f"{path}: the first line has no column {' nor '.join(sorted(missing))}; expected {expected}, "
                         f"separated by commas, got {_shortened(lines.fieldnames)}")
    span = [column for column in ("start", "end") if column in there and kind == "video"]
    if len(span) == 1:
        raise InputError(f"{path}: has a column {span[0]} alone; expected {expected}")
    more = [column for column in ("split", LANGUAGE, *span) if column in there]
    named = [kind, "caption", *more]
    table = pd.concat(_parts(lines, named, span, expected), ignore_index=True).assign(kind=kind)
    for column in span:
        table[column] = [_seconds(text, path) for text in table[column]]
    return table.sort_values("image_id", kind="stable")  # an image's captions may stand apart in the file


def _parts(lines: csv.DictReader[str], named: Sequence[str], span: Sequence[str], expected: str
           ) -> Iterator[pd.DataFrame]:
    """Read some lines at a time, so that few are Python objects; of a file without lines one table without rows."""
    columns = ["image_id", "file", "caption_id", "caption", *named[2:]]
    rows: list[tuple[object, ...]] = []
    numbers: dict[tuple[str, ...], int] = {}
    number = -1
    with refusing(csv.Error, lambda error: f"CSV line {lines.line_num}: {error}"):
        for number, line in enumerate(lines):
            if None in line:
                raise InputError(f"CSV line {lines.line_num}: more fields than columns; put quotes round a "
                                 "caption that holds a comma")
            file, caption, *rest = (line[column] for column in named)
            if not file or None in (caption, *rest):
                raise InputError(f"CSV line {lines.line_num}: expected {expected}, a field is missing")
            clip = (file, *(line[column].strip() for column in span))
            rows.append((numbers.setdefault(clip, len(numbers)), file, number, caption, *rest))
            if len(rows) == AT_ONCE:
                yield pd.DataFrame(rows, columns=columns)
                rows.clear()
    if rows or number < 0:  # columns without rows are of other types
        yield pd.DataFrame(rows, columns=columns)


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
