"""CxC (Crisscrossed Captions), from its own files: images and captions of COCO's test split that people judged similar.

Of `sits_test.csv` (caption, image), `sis_test.csv` (image, image) and `sts_test.csv` (caption, caption) a pair is right
that has a rating of 3 or more, of 5. For captions and images these are the very pairs of the package `eccv_caption`.

Source: Parekh et al., EACL 2021; the four tasks: Chen et al., CVPR 2021 (VSE∞), Table 5.
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.evaluation.retrieval.collection import Collection, Side
from pipeline.evaluation.retrieval.relevance import Positives, Relevance
from pipeline.parts.errors import InputError

RIGHT = 3.0
"""The least rating of a right pair."""

FILES: dict[str, tuple[Side, Side]] = {"sits_test.csv": ("caption", "image"), "sis_test.csv": ("image", "image"),
                                       "sts_test.csv": ("caption", "caption")}
ID = {"image": re.compile(r"COCO_\w+_(\d{12})\.jpg"), "caption": re.compile(r"COCO_\w+:sentid:(\d{1,12})")}


class Cxc(NamedTuple):
    """What is right."""

    across: Relevance  # captions of images and images of captions
    images: Positives  # the similar images of each image, without itself
    captions: Positives  # the similar captions of each caption


def read(folder: Path, collection: Collection) -> Cxc:
    """Reads the three files."""
    pairs = {name: _right(folder / name, collection, *sides) for name, sides in FILES.items()}
    caption, image = pairs["sits_test.csv"]
    return Cxc(Relevance.of_pairs(image, caption, collection.shape, owner=collection.caption_image),
               _both_ways(*pairs["sis_test.csv"], collection.shape[0]),
               _both_ways(*pairs["sts_test.csv"], collection.shape[1]))


def _both_ways(one: Ids, other: Ids, count: int) -> Positives:
    key = np.unique(np.concatenate([one * count + other, other * count + one]))
    query, candidate = key // count, key % count
    others = query != candidate
    return Positives.of_pairs(query[others], candidate[others], count)


def _right(path: Path, collection: Collection, first: Side, second: Side) -> tuple[Ids, Ids]:
    """The places of right pairs."""
    rows = list(_rows(path, first, second))
    ids = np.array([row[:2] for row in rows if row[2] >= RIGHT], np.int64).reshape(-1, 2)
    if not len(ids):
        raise InputError(f"{path}: has no pair with a rating of {RIGHT:g} or more")
    return collection.require(first, ids[:, 0], str(path)), collection.require(second, ids[:, 1], str(path))


def _rows(path: Path, first: Side, second: Side) -> Iterator[tuple[int, int, float]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file)
            next(reader, None)
            for number, row in enumerate(reader, 2):
                one, other = (ID[side].fullmatch(cell) for side, cell in zip((first, second), row, strict=False))
                if one is None or other is None:
                    raise ValueError(f"line {number} does not begin with ids of a COCO {first} and {second}")
                yield int(one[1]), int(other[1]), float(row[2])
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; CxC's files lie in data/ of "
                         "google-research-datasets/Crisscrossed-Captions") from None
    except (ValueError, IndexError, csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is no file of CxC: {str(error)[:200]}") from None
