"""Ids of sources: by file name, by COCO's number, by image id; never by two of them at once."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.image_ids import rows_of
from pipeline.foundation.parts.errors import InputError


def manifest(files: list[str], image_ids: list[int]) -> Manifest:
    rows = [
        (number, file, 1, "test", number, "A caption.")
        for number, file in zip(image_ids, files, strict=True)
    ]
    columns = ["image_id", "file", "bytes", "split", "caption_id", "caption"]
    return Manifest(pd.DataFrame(rows, columns=columns), "mine", Path())


COCO = ["train2014/COCO_train2014_000000000042.jpg", "val2014/COCO_val2014_000000000007.jpg"]


@pytest.mark.parametrize(
    ("files", "image_ids", "ids", "rows"),
    [
        (COCO, [42, 7], ["COCO_val2014_000000000007", "COCO_train2014_000000000042"], [1, 0]),
        (COCO, [42, 7], ["7", "42", "9"], [1, 0, None]),
        (COCO, [42, 7], ["000000000007.jpg", "COCO_val2017_000000000009"], [1, None]),
        (COCO, [42, 7], ["7.jpg", "9.jpg"], [None, None]),  # a photograph of another data set
        (["a/b.jpg"], [42], ["a\\b.jpg", " ./b.jpg ", "a/b.jpg.npz"], [0, 0, None]),
        (COCO, [42, 7], ["000000000007", "000000000042"], [1, 0]),
        (
            ["000000000007.jpg", "000000000042.jpg"],
            [0, 1],
            ["COCO_val2014_000000000042", "7"],
            [1, 0],
        ),
        (
            COCO,
            [42, 7],
            ["val2014/COCO_val2014_000000000007", "train2014/COCO_train2014_000000000042.jpg"],
            [1, 0],
        ),
        (
            ["36979.jpg", "1000092795.jpg"],
            [0, 1],
            ["1000092795", "36979", "1"],
            [1, 0, None],
        ),  # not by the image id 1
        (["36979.jpg", "1000092795.jpg"], [0, 1], ["0", "1"], [0, 1]),
        (["a/1.jpg", "b/1.jpg", "b/2.jpg"], [5, 6, 7], ["a/1", "b/1", "1", "2"], [0, 1, None, 2]),
        (["zoë.jpg", "two words.png"], [0, 1], ["two words", "zoë"], [1, 0]),
        # By the file name and by the image id one is known each: file names come first.
        (["1.jpg", "0.jpg"], [0, 1], ["1", "9"], [0, None]),
    ],
)
def test_rows(
    files: list[str], image_ids: list[int], ids: list[str], rows: list[int | None]
) -> None:
    if not any(row is not None for row in rows):
        with pytest.raises(InputError, match="none of its 2 ids is an image of mine"):
            rows_of(ids, manifest(files, image_ids), Path("source"))
        return
    assert rows_of(ids, manifest(files, image_ids), Path("source")) == rows


def test_names_of_other_things_with_the_same_number_are_no_images() -> None:
    with pytest.raises(InputError, match="none of its 1 ids"):
        rows_of(["cat_7"], manifest(["photo_7.jpg"], [7]), Path("source"))
