"""ARO (Yuksekgonul et al., ICLR 2023): relations and attributes of Visual Genome.

visual_genome_relation.json and visual_genome_attribution.json hold a list of {image_path, bbox_x, bbox_y, bbox_w,
bbox_h, true_caption, false_caption, …}. What is shown to a system is the box, cut out of the image. The crops must be
image files of their own, as 2323_10_20_200_150.jpg for the box at x 10, y 20 of 200 × 150 pixels of 2323.jpg.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pipeline.errors import InputError
from pipeline.hard_negatives.json_files import entries, text
from pipeline.hard_negatives.question import Question

FILES = ("visual_genome_relation.json", "visual_genome_attribution.json")


def read(path: Path) -> list[Question]:
    """Read the files of a folder, or one of them.

    Args:
        path: The folder with both files, or a file.

    Returns:
        The questions; their category is "relation" or "attribution".

    Raises:
        InputError: If there is none, or one is malformed.
    """
    found = [path / name for name in FILES] if path.is_dir() else [path]
    return [Question(_crop(entry, file), (text(entry, "true_caption", file),), (text(entry, "false_caption", file),),
                     file.stem.rsplit("_", 1)[-1])
            for file in found for entry in entries(file)]


def _crop(entry: Mapping[str, Any], file: Path) -> str:
    box = [entry.get(f"bbox_{side}") for side in "xywh"]
    if not all(isinstance(side, int | float) for side in box):
        raise InputError(f"{file}: expected bbox_x, bbox_y, bbox_w and bbox_h in every entry, got {str(entry)[:120]}")
    image = PurePosixPath(text(entry, "image_path", file))
    return f"{image.stem}_{'_'.join(f'{side:g}' for side in box)}{image.suffix}"
