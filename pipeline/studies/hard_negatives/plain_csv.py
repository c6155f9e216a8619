"""Questions as a CSV: columns image, positive, negative; positive and negative may stand several times."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from pipeline.manifest.reader import text_of
from pipeline.parts.errors import InputError
from pipeline.studies.hard_negatives.question import Question

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
