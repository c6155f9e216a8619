"""Karpathy's JSON: dataset_coco.json, dataset_flickr30k.json, dataset_flickr8k.json and files like them."""

from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.files.parsing import whole
from pipeline.manifest.reader import Reader, json_of
from pipeline.parts.errors import InputError

# "restval" holds the images of COCO's val2014 that the split gives back to training (Karpathy & Fei-Fei 2015).
SPLIT_OF = {"restval": "train"}


def read(path: Path) -> pd.DataFrame:
    """Read a file in Karpathy's layout."""
    tree = json_of(path)
    images = tree.get("images") if isinstance(tree, dict) else None
    if not isinstance(images, list):
        raise InputError("the annotation file is not in Karpathy's layout: expected a list 'images'")
    rows = [row for number, image in enumerate(images) for row in _captions(image, number)]
    return pd.DataFrame(rows, columns=["image_id", "file", "split", "caption_id", "caption"])


def _captions(image: Any, number: int) -> list[tuple[int, str, str, int, str]]:
    try:
        file = "/".join(filter(None, [image.get("filepath", ""), image["filename"]]))
        image_id = whole(image.get("cocoid", image["imgid"]))
        split = SPLIT_OF.get(image["split"], image["split"])
        captions = [(image_id, file, split, whole(sentence["sentid"]), sentence["raw"])
                    for sentence in image["sentences"]]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"annotation file, image {number}: not in Karpathy's layout "
                         f"({type(error).__name__}: {error})") from None
    if not captions:
        raise InputError(f"annotation file, image {number} ({file!r}): has no caption")
    if not all(isinstance(text, str) for row in captions for text in (row[1], row[2], row[4])):
        raise InputError(f"annotation file, image {number}: file name, split and captions must be text")
    return captions


READER = Reader("a .json file in Karpathy's layout", lambda path: path.suffix.lower() == ".json", read,
                names_every_image=False)
