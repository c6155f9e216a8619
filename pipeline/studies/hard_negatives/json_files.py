"""The published benchmarks whose questions are JSON. A reader takes a file or its folder.

SugarCrepe (Hsieh et al., NeurIPS 2023) has seven files on COCO val2017, one for each kind of change: {"0":
{"filename", "caption", "negative_caption"}, …}. Winoground (Thrush et al., CVPR 2022) has two images and two captions
of the same words in examples.jsonl: id, image_0, image_1, caption_0, caption_1, collapsed_tag; images lie in files
image_0.png and so on. ARO (Yuksekgonul et al., ICLR 2023), relations and attributes of Visual Genome, has two lists
of {image_path, bbox_x, bbox_y, bbox_w, bbox_h, true_caption, false_caption, …}. What is shown to a system is the box,
cut out of the image. The crops must be image files of their own, as 2323_10_20_200_150.jpg for the box at x 10, y 20
of 200 × 150 pixels of 2323.jpg.
"""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pipeline.files.parsing import from_json
from pipeline.manifest.reader import text_of
from pipeline.parts.errors import InputError
from pipeline.studies.hard_negatives.question import Question

SUGARCREPE = ("add_att", "add_obj", "replace_att", "replace_obj", "replace_rel", "swap_att", "swap_obj")
ARO = ("visual_genome_relation.json", "visual_genome_attribution.json")


def sugarcrepe(path: Path) -> list[Question]:
    """A question an entry; its category is the file's name."""
    found = [path / f"{name}.json" for name in SUGARCREPE] if path.is_dir() else [path]
    return [Question(_text(entry, "filename", file), (_text(entry, "caption", file),),
                     (_text(entry, "negative_caption", file),), file.stem)
            for file in found for entry in _entries(file)]


def winoground(path: Path) -> list[Question]:
    """Two questions an entry, in a group of their own; their category is the entry's `collapsed_tag`."""
    file = path / "examples.jsonl" if path.is_dir() else path
    found = []
    for number, entry in enumerate(_entries(file)):
        captions = [_text(entry, f"caption_{side}", file) for side in (0, 1)]
        category = _text(entry, "collapsed_tag", file) if "collapsed_tag" in entry else "all"
        found += [Question(_text(entry, f"image_{side}", file), (captions[side],), (captions[1 - side],), category,
                           f"{number}") for side in (0, 1)]
    return found


def aro(path: Path) -> list[Question]:
    """A question an entry; its category is "relation" or "attribution"."""
    found = [path / name for name in ARO] if path.is_dir() else [path]
    return [Question(_crop(entry, file), (_text(entry, "true_caption", file),),
                     (_text(entry, "false_caption", file),), file.stem.rsplit("_", 1)[-1])
            for file in found for entry in _entries(file)]


def _entries(path: Path) -> list[Mapping[str, Any]]:
    """The objects of a list, of an object of objects or, with the suffix .jsonl, one a line."""
    try:
        held = [from_json(line) for line in text_of(path).splitlines() if line.strip()] if path.suffix == ".jsonl" \
            else from_json(text_of(path))
    except ValueError as error:
        raise InputError(f"{path}: not readable as JSON: {error}") from None
    found = list(held.values()) if isinstance(held, dict) else held
    if not isinstance(found, list) or not found or not all(isinstance(entry, dict) for entry in found):
        raise InputError(f"{path}: expected a list of objects")
    return found


def _text(entry: Mapping[str, Any], key: str, path: Path) -> str:
    if not isinstance(value := entry.get(key), str):
        raise InputError(f"{path}: expected a text {key!r} in every entry, got {str(entry)[:120]}")
    return value


def _crop(entry: Mapping[str, Any], file: Path) -> str:
    box = [entry.get(f"bbox_{side}") for side in "xywh"]
    if not all(isinstance(side, int | float) for side in box):
        raise InputError(f"{file}: expected bbox_x, bbox_y, bbox_w and bbox_h in every entry, got {str(entry)[:120]}")
    image = PurePosixPath(_text(entry, "image_path", file))
    return f"{image.stem}_{'_'.join(f'{side:g}' for side in box)}{image.suffix}"
