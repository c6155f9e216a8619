"""Captions that belong to no image, and images that have no caption: candidates of the rows'
splits, never queries.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest.columns import NO_CAPTION, NO_FILE, NO_IMAGE
from pipeline.foundation.parts.errors import InputError, counted

if TYPE_CHECKING:
    import pandas as pd

Say = Callable[[str], object]


def apart(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Take the captions that belong to no image apart from the others."""
    alone = table["file"] == ""
    if not alone.any():
        return table, table.iloc[:0]
    return table[~alone].reset_index(drop=True), table[alone]


def with_captions(table: pd.DataFrame, alone: pd.DataFrame, source: Path, say: Say) -> pd.DataFrame:
    """Append the captions that belong to no image; without a split of their own they are in
    test.
    """
    import pandas as pd

    splits = alone.get("split", pd.Series("test", alone.index))
    known = splits.where(splits.isin(table["split"]))
    if known.isna().any():
        first = alone["caption"][known.isna()].iloc[0]
        raise InputError(
            f"{source}: {first!r:.60} belongs to no image, and its split has none; expected one of {', '.join(table['split'].unique())}"
        )
    if alone["caption_id"].isin(table["caption_id"]).any():
        raise InputError(
            f"{source}: captions that belong to no image need caption ids of their own"
        )
    first = alone["caption"].iloc[0]
    say(
        f"note: {counted(len(alone), 'caption')} without an image, such as {first!r:.60}: "
        "candidates, never queries"
    )
    alone = alone.assign(split=known, image_id=NO_IMAGE, bytes=NO_FILE)
    return pd.concat([table, alone.reindex(columns=table.columns)], ignore_index=True)


def mark_images(
    table: pd.DataFrame, noun: str, left_out: LeftOut, source: Path, say: Say
) -> pd.DataFrame:
    """Keep one row of each image whose captions are all "", with the id NO_CAPTION; leave out other
    such captions.
    """
    blank = table["caption"] == ""
    if not blank.any():
        return table
    captioned = table["image_id"].isin(table.loc[~blank, "image_id"])
    alone = blank & ~captioned & ~table.duplicated("image_id")
    for file in table.loc[blank & ~alone, "file"]:
        left_out.add("no caption", f"{source}, {file}")
    if alone.any():
        images = counted(int(alone.sum()), noun)
        first = table.loc[alone, "file"].iloc[0]
        say(f"note: {images} without a caption, such as {first}: candidates, never queries")
    marked = table.assign(caption_id=table["caption_id"].mask(alone, NO_CAPTION))
    return marked[~blank | alone].reset_index(drop=True)


def require_captions(table: pd.DataFrame, noun: str, source: Path) -> None:
    """Refuse a split of images alone."""
    captioned = table.loc[table["caption_id"] != NO_CAPTION, "split"].unique()
    lacking = [split for split in table["split"].unique() if split not in captioned]
    if lacking:
        raise InputError(
            f"{source}: no {noun} of the split {lacking[0]} has a caption; put them into a split that has "
            f"captions: {', '.join(captioned)}"
        )
