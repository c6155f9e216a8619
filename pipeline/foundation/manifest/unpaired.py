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
    without_image = table["file"] == ""
    if not without_image.any():
        return table, table.iloc[:0]
    return table[~without_image].reset_index(drop=True), table[without_image]


def with_captions(table: pd.DataFrame, alone: pd.DataFrame, source: Path, say: Say) -> pd.DataFrame:
    """Append the captions that belong to no image; without a split of their own they are in
    test.
    """
    import pandas as pd

    splits = alone.get("split", pd.Series("test", alone.index))
    has_images = splits.isin(table["split"])
    if not has_images.all():
        caption = alone.loc[~has_images, "caption"].iloc[0]
        expected = ", ".join(table["split"].unique())
        raise InputError(
            f"{source}: {caption!r:.60} belongs to no image, and its split has none; "
            f"expected one of {expected}"
        )
    if alone["caption_id"].isin(table["caption_id"]).any():
        raise InputError(
            f"{source}: captions that belong to no image need caption ids of their own"
        )
    captions = counted(len(alone), "caption")
    caption = alone["caption"].iloc[0]
    say(f"note: {captions} without an image, such as {caption!r:.60}: candidates, never queries")
    alone = alone.assign(split=splits, image_id=NO_IMAGE, bytes=NO_FILE)
    alone = alone.reindex(columns=table.columns)
    return pd.concat([table, alone], ignore_index=True)


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
        file = table.loc[alone, "file"].iloc[0]
        say(f"note: {images} without a caption, such as {file}: candidates, never queries")
    caption_ids = table["caption_id"].mask(alone, NO_CAPTION)
    marked = table.assign(caption_id=caption_ids)
    return marked[~blank | alone].reset_index(drop=True)


def require_captions(table: pd.DataFrame, noun: str, source: Path) -> None:
    """Refuse a split of images alone."""
    is_caption = table["caption_id"] != NO_CAPTION
    captioned = table.loc[is_caption, "split"].unique()
    lacking = [split for split in table["split"].unique() if split not in captioned]
    if lacking:
        raise InputError(
            f"{source}: no {noun} of the split {lacking[0]} has a caption; put them into a split that has "
            f"captions: {', '.join(captioned)}"
        )
