"""An image with right and wrong captions, and the CSV that holds such questions."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.files.atomic import write_text
from pipeline.parts.errors import InputError


@dataclass(frozen=True)
class Question:
    """Which caption is right?"""

    image: str  # the image's file, as the benchmark names it
    positives: tuple[str, ...]  # right captions, one at least
    negatives: tuple[str, ...]  # wrong captions, one at least
    category: str  # what is wrong in them; questions are counted by it
    group: str = ""  # the name of a group of two questions whose captions are each other's (Winoground); "" for none

    def __post_init__(self) -> None:
        captions = (*self.positives, *self.negatives)
        if not self.image or not self.positives or not self.negatives or not all(each.strip() for each in captions):
            raise InputError(f"{self.image or 'a question without an image'}: expected an image, right captions and "
                             "wrong captions, none of them empty")


def save(path: Path, questions: Sequence[Question]) -> None:
    """Write questions as the CSV that `plain_csv` reads.

    Args:
        path: The file.
        questions: The questions.
    """
    most = [max(len(getattr(each, side)) for each in questions) for side in ("positives", "negatives")]
    held = io.StringIO()
    rows = csv.writer(held, lineterminator="\n")
    rows.writerow(["image", "category", "group", *["positive"] * most[0], *["negative"] * most[1]])
    for each in questions:
        rows.writerow([each.image, each.category, each.group,
                       *each.positives, *[""] * (most[0] - len(each.positives)),
                       *each.negatives, *[""] * (most[1] - len(each.negatives))])
    write_text(path, held.getvalue())
