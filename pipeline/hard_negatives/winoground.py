"""Winoground (Thrush et al., CVPR 2022): two images and two captions of the same words, in examples.jsonl.

An entry has id, image_0, image_1, caption_0, caption_1 and collapsed_tag; images lie in files image_0.png and so on.
"""

from __future__ import annotations

from pathlib import Path

from pipeline.hard_negatives.json_files import entries, text
from pipeline.hard_negatives.question import Question


def read(path: Path) -> list[Question]:
    """Read examples.jsonl.

    Args:
        path: The file, or its folder.

    Returns:
        Two questions an entry, in a group of their own; their category is the entry's `collapsed_tag`.

    Raises:
        InputError: If it is missing or malformed.
    """
    file = path / "examples.jsonl" if path.is_dir() else path
    found = []
    for number, entry in enumerate(entries(file)):
        captions = [text(entry, f"caption_{side}", file) for side in (0, 1)]
        category = text(entry, "collapsed_tag", file) if "collapsed_tag" in entry else "all"
        found += [Question(text(entry, f"image_{side}", file), (captions[side],), (captions[1 - side],), category,
                           f"{number}") for side in (0, 1)]
    return found
