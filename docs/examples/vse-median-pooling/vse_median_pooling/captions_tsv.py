"""Captions in a table whose cells are separated by tabs: image, caption, split."""

from pathlib import Path

import pandas as pd

from pipeline.manifest.reader import Reader, text_of
from pipeline.parts.errors import InputError


def read(path: Path) -> pd.DataFrame:
    """Read a table of captions.

    Args:
        path: The file; each line is image, caption and split.

    Returns:
        A row a caption, the rows of an image together.

    Raises:
        InputError: For a line with another number of cells.
    """
    rows, numbers = [], {}
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        cells = line.split("\t")
        if len(cells) != 3:
            raise InputError(f"{path}: line {number}: expected image, caption and split, got {len(cells)} cells")
        file, caption, split = cells
        rows.append((numbers.setdefault(file, len(numbers)), file, split, len(rows), caption))
    table = pd.DataFrame(rows, columns=["image_id", "file", "split", "caption_id", "caption"])
    return table.sort_values("image_id", kind="stable")


READER = Reader("a .tsv file with cells image, caption, split", lambda path: path.suffix.lower() == ".tsv", read,
                names_every_image=True)
