"""The images that an audit compares, and the numbers that name their photographs across data
sets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError

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


@dataclass(frozen=True)
class Collection:
    """A data set, or one split of it."""

    name: str  # as the user wrote it, e.g. flickr8k:test
    folder: Path  # the folder of the image files
    image_ids: np.ndarray  # int64 [I]
    files: list[str]  # the I files' names below the folder
    splits: np.ndarray  # str [I]
    captions: list[str]  # the C captions
    caption_image: np.ndarray  # int64 [C], each caption's image as a row

    @classmethod
    def of(cls, manifest: Manifest, split: str | None = None) -> Collection:
        """Take the images and captions of a data set, or of one split."""
        name = manifest.dataset
        images = manifest.images
        table = manifest.rows(["image_id", "split", "caption"])
        if split is not None:
            name = f"{manifest.dataset}:{split}"
            images = images[images["split"] == split]
            table = table[table["split"] == split]
            if not len(images):
                splits = ", ".join(manifest.images["split"].unique())
                raise InputError(
                    f"{manifest.dataset}: no images in the split {split!r}; there are: {splits}"
                )
        ids = images["image_id"].to_numpy()
        caption_image = pd.Index(ids).get_indexer(table["image_id"])
        return cls(
            name=name,
            folder=manifest.images_folder,
            image_ids=ids,
            files=images["file"].tolist(),
            splits=images["split"].to_numpy(str),
            captions=table["caption"].tolist(),
            caption_image=caption_image,
        )


def trained_on(train: Manifest, test: Manifest, test_ids: np.ndarray) -> list[str]:
    """List the files of a pool's photographs, int64 image ids of `test`, that the split train of
    `train` has, too.

    They are recognised by the numbers in their names alone; an audit also compares contents.
    """
    train_files = train.images.loc[train.images["split"] == "train", "file"]
    seen = set(map(photograph, train_files)) - {None}
    files = test.images.loc[test.images["image_id"].isin(test_ids), "file"]
    return [file for file in files if photograph(file) in seen]
