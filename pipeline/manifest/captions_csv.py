"""A plain CSV of captions: columns image, caption and, if there are splits, split."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pandas as pd

from pipeline.errors import InputError
from pipeline.manifest.reader import Reader, text_of


def read(path: Path) -> pd.DataFrame:
    """Read a CSV of captions.

    Args:
        path: The file. Without a column `split` all images are in the split test.

    Returns:
        A row a caption. Images are numbered in the order of their first mention, captions in theirs.

    Raises:
        InputError: For a file that is no such CSV, naming the line.
    """
    lines = csv.DictReader(io.StringIO(text_of(path)), strict=True)
    try:
        missing = {"image", "caption"} - set(lines.fieldnames or [])
    except csv.Error as error:
        raise InputError(f"CSV line 1: {error}") from None
    if missing:
        raise InputError(f"the CSV has no column {' nor '.join(sorted(missing))}; expected image,caption[,split], "
                         f"got {', '.join(lines.fieldnames or ['nothing'])}")
    rows: list[tuple[int, str, str, int, str]] = []
    numbers: dict[str, int] = {}
    try:
        for line in lines:
            if None in line:
                raise InputError(f"CSV line {lines.line_num}: more fields than columns; put quotes round a "
                                 "caption that holds a comma")
            file, caption, split = line["image"], line["caption"], line.get("split", "test")
            if not file or caption is None or split is None:
                raise InputError(f"CSV line {lines.line_num}: expected image,caption[,split], a field is missing")
            rows.append((numbers.setdefault(file, len(numbers)), file, split, len(rows), caption))
    except csv.Error as error:
        raise InputError(f"CSV line {lines.line_num}: {error}") from None
    table = pd.DataFrame(rows, columns=["image_id", "file", "split", "caption_id", "caption"])
    return table.sort_values("image_id", kind="stable")  # an image's captions may stand apart in the file


READER = Reader("a .csv file with columns image,caption[,split]", lambda path: path.suffix.lower() == ".csv", read,
                names_every_image=True)
