"""An image with right and wrong captions, and the CSV that holds such questions."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.files.atomic import write_text
from pipeline.manifest.reader import text_of
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
    """Write questions as the CSV that `read` reads.

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


# Questions as a CSV: columns image, positive, negative; positive and negative may stand several times.
EXPECTED = "image,positive[,positive…],negative[,negative…][,category][,group]"


def read(path: Path) -> list[Question]:
    """Read a CSV. Empty fields of positive and negative are left out."""
    lines = csv.reader(io.StringIO(text_of(path), newline=None), strict=True)
    try:
        header = next(lines, [])
        unknown = set(header) - {"image", "positive", "negative", "category", "group"}
        if unknown or not {"image", "positive", "negative"} <= set(header):
            raise InputError(f"{path}: the first line must be {EXPECTED}, got {','.join(header)[:80]!r}")
        return [_question(f"{path}, line {lines.line_num}", header, line) for line in lines if line]
    except csv.Error as error:
        raise InputError(f"{path}, line {lines.line_num}: {error}") from None


def _question(place: str, header: list[str], line: list[str]) -> Question:
    if len(line) != len(header):
        raise InputError(f"{place}: expected {len(header)} fields, got {len(line)}; put quotes round a caption that "
                         "holds a comma")
    fields: dict[str, list[str]] = {}
    for name, value in zip(header, line, strict=True):
        fields.setdefault(name, []).append(value)
    positives, negatives = (tuple(filter(None, fields[side])) for side in ("positive", "negative"))
    try:
        return Question(fields["image"][0], positives, negatives, fields.get("category", ["all"])[0] or "all",
                        fields.get("group", [""])[0])
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
