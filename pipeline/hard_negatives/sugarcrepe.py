"""SugarCrepe (Hsieh et al., NeurIPS 2023): seven JSON files on COCO val2017, one for each kind of change.

add_att, add_obj, replace_att, replace_obj, replace_rel, swap_att and swap_obj.json hold
{"0": {"filename", "caption", "negative_caption"}, …}.
"""

from __future__ import annotations

from pathlib import Path

from pipeline.hard_negatives.json_files import entries, text
from pipeline.hard_negatives.question import Question

CATEGORIES = ("add_att", "add_obj", "replace_att", "replace_obj", "replace_rel", "swap_att", "swap_obj")


def read(path: Path) -> list[Question]:
    """Read the files of a folder, or one of them.

    Args:
        path: The folder with the JSON files, or a file.

    Returns:
        The questions; their category is the file's name.

    Raises:
        InputError: If there is none, or one is malformed.
    """
    found = [path / f"{name}.json" for name in CATEGORIES] if path.is_dir() else [path]
    return [Question(text(entry, "filename", file), (text(entry, "caption", file),),
                     (text(entry, "negative_caption", file),), file.stem)
            for file in found for entry in entries(file)]
