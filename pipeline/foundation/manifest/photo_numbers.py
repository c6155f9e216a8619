"""The numbers that name photographs across data sets, and whether a pool's were trained on."""

import re
from pathlib import PurePosixPath

import numpy as np

from pipeline.foundation.manifest.table import Manifest

COCO = re.compile(r"(?:COCO_[A-Za-z0-9]+_)?(\d{12})")
FLICKR = re.compile(r"([1-9]\d{4,10})(?:_[0-9a-f]{10}(?:_[a-z])?)?")


def photograph(file: str) -> str | None:
    """Find the number by which data sets name a photograph: "flickr 1000268201" for
    1000268201_693b08cb0e.jpg.

    COCO's files are named by twelve digits, with a prefix or without. Those of Flickr8k, Flickr30K
    and Multi30K are named by Flickr's number, in Flickr8k with ten hexadecimal digits behind it.
    None for another name.
    """
    stem = PurePosixPath(file).stem
    for source, pattern in (("coco", COCO), ("flickr", FLICKR)):
        number = pattern.fullmatch(stem)
        if number:
            return f"{source} {int(number[1])}"
    return None


def trained_on(train: Manifest, test: Manifest, test_ids: np.ndarray) -> list[str]:
    """List the files of a pool's photographs, int64 image ids of `test`, that the split train of
    `train` has, too.

    They are recognised by the numbers in their names alone, not by their contents.
    """
    train_files = train.images.loc[train.images["split"] == "train", "file"]
    seen = set(map(photograph, train_files)) - {None}
    files = test.images.loc[test.images["image_id"].isin(test_ids), "file"]
    return [file for file in files if photograph(file) in seen]
