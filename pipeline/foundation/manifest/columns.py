"""The columns of a manifest, and the marks of what a row lacks."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from pipeline.foundation.manifest.caption_inputs import CAPTION_INPUTS

if TYPE_CHECKING:
    import pandas as pd

NO_IMAGE = -1  # the image id of a caption that belongs to no image
NO_CAPTION = -1  # the caption id in the row of an image that has no caption
NO_FILE = -1  # bytes of an image whose file was not looked at
COLUMNS = {
    "image_id": "int64",
    "file": "str",
    "bytes": "int64",
    "split": "str",
    "caption_id": "int64",
    "caption": "str",
}
PHOTOGRAPH = "photograph"
"""An optional column: the checksum of the image file, see `photographs.with_checksums`."""
LANGUAGE = "language"
"""An optional column."""
CLIP = {"kind": "str", "start": "float64", "end": "float64"}
"""The last columns, where gallery items are clips: "video", and seconds from the file's beginning,
NaN for its own beginning and end."""

AT_ONCE = 1 << 16  # rows that are read, and become Python objects, together


def caption_inputs_of(known: Collection[str]) -> list[str]:
    """List the known columns that hold further inputs of captions."""
    others = [name for name in known if name not in {*COLUMNS, PHOTOGRAPH, LANGUAGE, *CLIP}]
    return [name for name in others if name in CAPTION_INPUTS]


def columns_of(known: Collection[str]) -> dict[str, str]:
    """List the columns that a manifest with the known optional ones has: column -> dtype, in
    order.
    """
    columns = dict(COLUMNS)
    for column in (PHOTOGRAPH, LANGUAGE):
        if column in known:
            columns[column] = "str"
    columns |= dict.fromkeys(caption_inputs_of(known), "str")
    if "kind" in known:
        columns |= CLIP
    return columns


def arranged(table: pd.DataFrame) -> pd.DataFrame:
    """Convert a table to a manifest's columns, in their order and types; other columns are
    dropped.
    """
    columns = columns_of(table.columns)
    return table[list(columns)].astype(columns)
