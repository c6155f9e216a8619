"""The images that an audit compares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError


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
