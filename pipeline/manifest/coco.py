"""COCO's own annotations: captions_val2014.json, instances_train2017.json, or the folder `annotations` with several.

The split is that of the file's name. Instances have no captions: an image's caption is then the names of its objects,
so that its features can be extracted.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.files.parsing import text, whole
from pipeline.manifest.reader import Reader, json_of
from pipeline.manifest.table import SPLITS
from pipeline.parts.errors import InputError

NAME = re.compile(rf"(captions|instances)_(({'|'.join(SPLITS)})\d*)", re.IGNORECASE)
BEGINNING = 1 << 16  # bytes that are looked at to recognise a file
NO_OBJECT = "no object"
COLUMNS = ["image_id", "file", "caption_id", "caption"]


def recognises(path: Path) -> bool:
    """Tell COCO's layout from Karpathy's, which has `filename` in the place of `file_name`."""
    if path.is_dir():
        return bool(_captions_in(path))
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        return re.search(rb'"(file_name|image_id|annotations)"\s*:', file.read(BEGINNING)) is not None


def read(path: Path) -> pd.DataFrame:
    """Read a file in COCO's layout, or the captions of all splits in a folder.

    It gives a row a caption: image_id, file, caption_id, caption, and split where the file's name says it. Images stand
    in the file's order.
    """
    if not path.is_dir():
        return _file(path, "")
    return pd.concat([_file(file, f"{place}/") for file, place in _captions_in(path)], ignore_index=True)


def _captions_in(folder: Path) -> list[tuple[Path, str]]:
    """Files of captions, and the folder of their images, such as train2014."""
    found = [(file, NAME.fullmatch(file.stem)) for file in sorted(folder.glob("captions_*.json"))]
    return [(file, match[2]) for file, match in found if match]


def _file(path: Path, place: str) -> pd.DataFrame:
    tree = json_of(path)
    try:
        files = {whole(image["id"]): place + text(image["file_name"]) for image in tree["images"]}
        rows = list(_rows(tree, files))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"{path}: not in COCO's layout ({type(error).__name__}: {error})") from None
    table = pd.DataFrame(rows, columns=COLUMNS)
    order = {image: number for number, image in enumerate(files)}
    table = table.sort_values("image_id", key=lambda ids: ids.map(order), kind="stable", ignore_index=True)
    if match := NAME.match(path.stem):
        table["split"] = match[3].lower()
    return table


def _rows(tree: Mapping[str, Any], files: Mapping[int, str]) -> Iterable[tuple[int, str, int, str]]:
    if not any("caption" in each for each in tree["annotations"]):
        return _of_objects(tree, files)
    return [(image := whole(each["image_id"]), files[image], whole(each["id"]), text(each["caption"]).strip())
            for each in tree["annotations"]]


def _of_objects(tree: Mapping[str, Any], files: Mapping[int, str]) -> Iterable[tuple[int, str, int, str]]:
    """A row an image, with the names of its objects, each once, in the order of the annotations."""
    names = {whole(each["id"]): text(each["name"]) for each in tree["categories"]}
    objects: dict[int, dict[str, None]] = {image: {} for image in files}
    for each in tree["annotations"]:
        objects[whole(each["image_id"])][names[whole(each["category_id"])]] = None
    return [(image, file, image, ", ".join(objects[image]) or NO_OBJECT) for image, file in files.items()]


READER = Reader("COCO's captions_*.json or instances_*.json", recognises, read, names_every_image=False)
