"""Captions in blocks: a line with an image and its split, then its captions, a line each,
indented.
"""

import pandas as pd

from pipeline.foundation.manifest.reader import Reader, Source, table_of
from pipeline.foundation.manifest.text_file import text_of


def read(source: Source) -> pd.DataFrame:
    """Read blocks of captions.

    Args:
        source: The file, and what receives the lines that cannot be used.

    Returns:
        A row a caption, the rows of an image together.
    """
    images = []
    for number, line in enumerate(text_of(source.path).split("\n"), start=1):
        cells = line.split()
        if line.startswith(" ") and cells and images:
            images[-1][-1].append(line.strip())
        elif len(cells) == 2:
            images.append((len(images), cells[0], cells[1], []))
        elif cells:
            source.left_out.add("damaged row", f"{source.path}, line {number}")
    return table_of(images)


READER = Reader(
    "a .blocks file with an image and its split, then indented captions",
    lambda path: path.suffix.lower() == ".blocks",
    read,
    names_every_image=True,
)
