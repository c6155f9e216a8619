"""Photographs with captions in JSON: COCO's own annotations, and Karpathy's files of COCO, Flickr30K and Flickr8k.

COCO's are captions_val2014.json, instances_train2017.json, or the folder `annotations` with several. The split is that
of the file's name. Instances have no captions: an image's caption is then the names of its objects, so that its
features can be extracted. Karpathy's are dataset_coco.json, dataset_flickr30k.json, dataset_flickr8k.json and files
like them.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline.files.parsing import text, whole
from pipeline.manifest.reader import Reader, expecting, members_of, table_of_rows
from pipeline.manifest.table import SPLITS
from pipeline.parts.errors import InputError, refusing

NAME = re.compile(rf"(captions|instances)_(({'|'.join(SPLITS)})\d*)", re.IGNORECASE)
BEGINNING = 1 << 16  # bytes that are looked at to recognise a file
NO_OBJECT = "no object"
CAPTION = ["image_id", "caption_id", "caption"]
# "restval" holds the images of COCO's val2014 that the split gives back to training (Karpathy & Fei-Fei 2015).
SPLIT_OF = {"restval": "train"}


def _is_coco(path: Path) -> bool:
    """Tell COCO's layout from Karpathy's, which has `filename` in the place of `file_name`."""
    if path.is_dir():
        return bool(_captions_in(path))
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        return re.search(rb'"(file_name|image_id|annotations)"\s*:', file.read(BEGINNING)) is not None


def coco(path: Path) -> pd.DataFrame:
    """Read a file in COCO's layout, or the captions of all splits in a folder. Images are in the file's order."""
    if not path.is_dir():
        return _file(path, "")
    return pd.concat([_file(file, f"{place}/") for file, place in _captions_in(path)], ignore_index=True)


def _captions_in(folder: Path) -> list[tuple[Path, str]]:
    """Files of captions, and the folder of their images, such as train2014."""
    found = [(file, NAME.fullmatch(file.stem)) for file in sorted(folder.glob("captions_*.json"))]
    return [(file, match[2]) for file, match in found if match]


def _file(path: Path, place: str) -> pd.DataFrame:
    files: dict[int, str] = {}
    objects: list[tuple[int, Any]] = []
    with expecting(path, "in COCO's layout"):
        table = table_of_rows(_captions(path, files, objects), CAPTION)
        if table.empty:
            table = table_of_rows(_of_objects(path, files, objects), CAPTION)
        elif objects:
            raise KeyError("caption")
        places = pd.Index([*files]).get_indexer(pd.Index(table["image_id"]))
        if (places < 0).any():
            raise KeyError(int(table["image_id"].iloc[int(places.argmin())]))
    order = np.argsort(places, kind="stable")
    table = table.iloc[order].reset_index(drop=True)
    table["file"] = (place + pd.Series([*files.values()], dtype="str")).array.take(places[order])
    if match := NAME.match(path.stem):
        table["split"] = match[3].lower()
    return table


def _captions(path: Path, files: dict[int, str], objects: list[tuple[int, Any]]) -> Iterator[tuple[int, int, str]]:
    """Read captions, and gather the files of images and the categories of objects, which have no captions."""
    for member, each in members_of(path, "images", "annotations"):
        if member == "images":
            files[whole(each["id"])] = text(each["file_name"])
        elif "caption" in each:
            yield whole(each["image_id"]), whole(each["id"]), text(each["caption"]).strip()
        else:
            objects.append((whole(each["image_id"]), each.get("category_id")))


def _of_objects(path: Path, images: Iterable[int], objects: Iterable[tuple[int, Any]]
                ) -> Iterator[tuple[int, int, str]]:
    """A row for each image, with the names of its objects, each once, in the order of the annotations."""
    names = {whole(each["id"]): text(each["name"]) for _, each in members_of(path, "categories")}
    own: dict[int, dict[str, None]] = {image: {} for image in images}
    for image, category in objects:
        own[image][names[whole(category)]] = None
    return ((image, image, ", ".join(found) or NO_OBJECT) for image, found in own.items())


def karpathy(path: Path) -> pd.DataFrame:
    """Read a file in Karpathy's layout."""
    rows = (row for number, (_, image) in enumerate(members_of(path, "images")) for row in _sentences(image, number))
    with refusing(LookupError, "the annotation file is not in Karpathy's layout: expected a list 'images'"):
        return table_of_rows(rows, ["image_id", "file", "split", "caption_id", "caption"])


def _sentences(image: Any, number: int) -> list[tuple[int, str, str, int, str]]:
    with expecting(f"annotation file, image {number}", "in Karpathy's layout"):
        file = "/".join(filter(None, [image.get("filepath", ""), image["filename"]]))
        image_id = whole(image.get("cocoid", image["imgid"]))
        split = SPLIT_OF.get(image["split"], image["split"])
        captions = [(image_id, file, split, whole(sentence["sentid"]), sentence["raw"])
                    for sentence in image["sentences"]]
    if not captions:
        raise InputError(f"annotation file, image {number} ({file!r}): has no caption")
    if not all(isinstance(text, str) for text in (file, split, *(row[4] for row in captions))):
        raise InputError(f"annotation file, image {number}: file name, split and captions must be text")
    return captions


COCO = Reader("COCO's captions_*.json or instances_*.json", _is_coco, coco)
KARPATHY = Reader("a .json file in Karpathy's layout", lambda path: path.suffix.lower() == ".json", karpathy)
