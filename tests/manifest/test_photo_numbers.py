"""Photographs are known across data sets by the numbers in their files' names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.photo_numbers import photograph, trained_on


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("1000268201_693b08cb0e.jpg", "flickr 1000268201"),
        ("1000268201.jpg", "flickr 1000268201"),
        ("images/10815824_2997e03d76.jpg", "flickr 10815824"),
        ("COCO_val2014_000000391895.jpg", "coco 391895"),
        ("000000391895.jpg", "coco 391895"),
        ("000123.png", None),  # a rendered scene: not the length of any data set's numbers
        ("IMG_20190101.jpg", None),
        ("beach.jpg", None),
    ],
)
def test_the_numbers_of_photographs(file: str, name: str | None) -> None:
    assert photograph(file) == name


def without_images(name: str, files: dict[str, str]) -> Manifest:
    """A manifest with one caption an image; files: of each image, with its split."""
    numbers = np.arange(len(files))
    table = pd.DataFrame(
        {
            "image_id": numbers,
            "file": list(files),
            "bytes": 1,
            "split": list(files.values()),
            "caption_id": numbers,
            "caption": "a dog",
        }
    )
    return Manifest(table, name, Path("nowhere"))


def test_a_pools_photographs_that_were_trained_on_are_those_of_the_same_number() -> None:
    train = without_images("train", {"1000268201.jpg": "train", "2000268201.jpg": "val"})
    files = ("1000268201_693b08cb0e.jpg", "2000268201_693b08cb0e.jpg", "beach.jpg")
    test = without_images("test", dict.fromkeys(files, "test"))
    assert trained_on(train, test, np.arange(3)) == ["1000268201_693b08cb0e.jpg"]
    assert trained_on(train, test, np.array([1, 2])) == []
