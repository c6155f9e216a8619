"""A plain CSV of captions: columns image, caption and, if there are splits or languages, split and language."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from pipeline.errors import InputError
from pipeline.manifest.reader import Reader, text_of
from pipeline.manifest.table import LANGUAGE

EXPECTED = "image,caption[,split][,language]"


def read(path: Path) -> pd.DataFrame:
    """Read a CSV of captions.

    Args:
        path: The file.

    Returns:
        A row a caption, with the columns `split` and `language` where the file has them. Images are numbered in the
        order of their first mention, captions in theirs.

    Raises:
        InputError: For a file that is no such CSV, naming the line.
    """
    lines = csv.DictReader(io.StringIO(text_of(path), newline=None), strict=True)  # None: any line ends
    try:
        missing = {"image", "caption"} - set(lines.fieldnames or [])
    except csv.Error as error:
        raise InputError(f"CSV line 1: {error}") from None
    if missing:
        raise InputError(f"{path}: the first line has no column {' nor '.join(sorted(missing))}; expected {EXPECTED}, "
                         f"separated by commas, got {_shortened(lines.fieldnames)}")
    more = [column for column in ("split", LANGUAGE) if column in (lines.fieldnames or [])]
    rows: list[tuple[object, ...]] = []
    numbers: dict[str, int] = {}
    try:
        for line in lines:
            if None in line:
                raise InputError(f"CSV line {lines.line_num}: more fields than columns; put quotes round a "
                                 "caption that holds a comma")
            file, caption, *rest = (line[column] for column in ("image", "caption", *more))
            if not file or None in (caption, *rest):
                raise InputError(f"CSV line {lines.line_num}: expected {EXPECTED}, a field is missing")
            rows.append((numbers.setdefault(file, len(numbers)), file, len(rows), caption, *rest))
    except csv.Error as error:
        raise InputError(f"CSV line {lines.line_num}: {error}") from None
    table = pd.DataFrame(rows, columns=["image_id", "file", "caption_id", "caption", *more])
    return table.sort_values("image_id", kind="stable")  # an image's captions may stand apart in the file


def _shortened(header: Sequence[str] | None) -> str:
    written = ",".join(header or ())
    return repr(written if len(written) <= 60 else f"{written[:60]}…") if written else "nothing"


READER = Reader(f"a .csv file with columns {EXPECTED}", lambda path: path.suffix.lower() == ".csv", read,
                names_every_image=True)
