"""COCO's test split with more right pairs than those of image and own caption: ECCV Caption and
CxC.

ECCV Caption (Chun et al., ECCV 2022) adds pairs that people confirmed, of 1,261 images and 1,332
captions; CxC (Crisscrossed Captions, Parekh et al., EACL 2021) those that people judged similar.
The package `eccv_caption` has both.

CxC's own files also have pairs of two images and of two captions: `sits_test.csv` (caption, image),
`sis_test.csv` (image, image) and `sts_test.csv` (caption, caption). A pair is right if its rating
is 3 or more, of 5. For captions and images these are the same pairs as the package's. The four
tasks: Chen et al., CVPR 2021 (VSE∞), Table 5.
"""

import csv
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.foundation.evaluation.retrieval import Collection, Ids, Positives, Relevance, Side
from pipeline.foundation.evaluation.retrieval.owners import of_owners, renumbered
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import InputError, refusing

# The metrics that are computed with each of the package's sets of pairs.
METRICS: dict[str, tuple[str, ...]] = {
    "eccv": ("mAP@R", "Rprec", "R@1", "R@5", "R@10"),
    "cxc": ("R@1", "R@5", "R@10"),
}
# The least rating of a right pair.
RIGHT = 3.0

FILES: dict[str, tuple[Side, Side]] = {
    "sits_test.csv": ("caption", "image"),
    "sis_test.csv": ("image", "image"),
    "sts_test.csv": ("caption", "caption"),
}
ID = {
    "image": re.compile(r"COCO_\w+_(\d{12})\.jpg"),
    "caption": re.compile(r"COCO_\w+:sentid:(\d{1,12})"),
}


def eccv_caption(
    collection: Collection, truth: Any = None
) -> tuple[Ids, Ids, dict[str, Relevance]]:
    """Find the package's 5,000 images and 25,000 captions (rows, columns), and their relevance:
    "eccv" and "cxc".
    """
    truth = truth or pairs_of_package()
    rows, columns = _pool(truth.coco_gts, collection)
    owner = renumbered(collection.caption_image[columns], rows, len(collection.image_ids))
    pool = Collection(collection.image_ids[rows], collection.caption_ids[columns], owner)
    relevance = {
        "eccv": _of_package(truth.eccv_gts, pool, "eccv"),
        "cxc": _of_package(truth.cxc_gts, pool, "cxc"),
    }
    return rows, columns, relevance


def _of_package(
    pairs: Mapping[str, Mapping[int, Iterable[int]]], pool: Collection, name: str
) -> Relevance:
    i2t = positives_of(pairs["i2t"], pool, "image", name)
    t2i = positives_of(pairs["t2i"], pool, "caption", name)
    return Relevance.of_directions(i2t, t2i, pool.caption_image)


def pairs_of_package() -> Any:
    """Load the package's pairs."""
    extras.require("eccv", "--extended")
    with warnings.catch_warnings():
        # The package warns that it reads JSON with the standard library.
        warnings.simplefilter("ignore")
        from eccv_caption import Metrics
    return Metrics()


def _pool(pairs: Mapping[str, Mapping[int, list[int]]], collection: Collection) -> tuple[Ids, Ids]:
    for what, ours, theirs in (
        ("images", collection.image_ids, pairs["i2t"]),
        ("captions", collection.caption_ids, pairs["t2i"]),
    ):
        missing = sorted(set(theirs) - set(ours.tolist()))
        if missing:
            raise InputError(
                f"{len(missing)} of the {len(theirs)} {what} of ECCV Caption are not here, such as "
                f"{missing[0]}; evaluate Karpathy's test split of COCO with COCO's own ids"
            )
    rows = np.flatnonzero(np.isin(collection.image_ids, list(pairs["i2t"])))
    columns = np.flatnonzero(np.isin(collection.caption_ids, list(pairs["t2i"])))
    owners = of_owners(collection.image_ids, collection.caption_image[columns])
    for caption, image in zip(
        collection.caption_ids[columns].tolist(), owners.tolist(), strict=True
    ):
        if pairs["t2i"][caption] != [image]:
            raise InputError(
                f"caption {caption} is of image {image} here, but of {pairs['t2i'][caption][0]} in ECCV "
                "Caption; make the manifest from annotations with COCO's own ids"
            )
    return rows, columns


def positives_of(
    pairs: Mapping[int, Iterable[int]], collection: Collection, side: Side, name: str
) -> Positives:
    """Query id -> ids of right candidates, as a sparse relation."""
    listed = []
    for query, candidates in pairs.items():
        for candidate in set(candidates):
            listed.append((query, candidate))
    query_ids, candidate_ids = np.array(listed, np.int64).reshape(-1, 2).T
    other: Side = "image"
    if side == "image":
        other = "caption"
    query_rows = collection.require(side, query_ids, name)
    candidate_rows = collection.require(other, candidate_ids, name)
    order = np.lexsort((candidate_rows, query_rows))
    count = len(collection.ids(side))
    return Positives.of_pairs(query_rows[order], candidate_rows[order], count)


class Cxc(NamedTuple):
    """The right pairs of CxC."""

    across: Relevance  # captions of images and images of captions
    images: Positives  # the similar images of each image, without itself
    captions: Positives  # the similar captions of each caption


def cxc(folder: Path, collection: Collection) -> Cxc:
    """Read CxC's three files."""
    of_images = _right(folder, "sis_test.csv", collection)
    of_captions = _right(folder, "sts_test.csv", collection)
    return Cxc(
        cxc_across(folder, collection),
        _both_ways(*of_images, collection.shape[0]),
        _both_ways(*of_captions, collection.shape[1]),
    )


def cxc_across(folder: Path, collection: Collection, least: float = RIGHT) -> Relevance:
    """Read CxC's pairs of caption and image, of which those with a rating of at least `least` are
    right.
    """
    caption, image = _right(folder, "sits_test.csv", collection, least)
    return Relevance.of_pairs(image, caption, collection.shape, owner=collection.caption_image)


def _both_ways(one: Ids, other: Ids, count: int) -> Positives:
    key = np.unique(np.concatenate([one * count + other, other * count + one]))
    query = key // count
    candidate = key % count
    distinct = query != candidate
    return Positives.of_pairs(query[distinct], candidate[distinct], count)


def _right(
    folder: Path, name: str, collection: Collection, least: float = RIGHT
) -> tuple[Ids, Ids]:
    """Read a file's right pairs: the rows or columns of their first and of their second items."""
    path = folder / name
    first, second = FILES[name]
    right = _rated(path, first, second, least)
    if not right:
        raise InputError(f"{path}: has no pair with a rating of {least:g} or more")
    ids = np.array(right, np.int64)
    of_first = collection.require(first, ids[:, 0], str(path))
    of_second = collection.require(second, ids[:, 1], str(path))
    return of_first, of_second


def _rated(path: Path, first: Side, second: Side, least: float) -> list[tuple[int, int]]:
    """Read the ids of a file's pairs that have a rating of at least `least`."""
    rated = []
    with (
        refusing(
            (ValueError, IndexError, csv.Error, UnicodeDecodeError),
            lambda error: f"{path}: is no file of CxC: {str(error)[:200]}",
        ),
        refusing(
            OSError,
            lambda error: (
                f"cannot read {path}: {error.strerror or error}; CxC's files are in data/ of "
                "google-research-datasets/Crisscrossed-Captions"
            ),
        ),
        path.open(encoding="utf-8", newline="") as file,
    ):
        reader = csv.reader(file)
        next(reader, None)
        for number, row in enumerate(reader, 2):
            first_id, second_id = row[:2]
            one = ID[first].fullmatch(first_id)
            other = ID[second].fullmatch(second_id)
            if one is None or other is None:
                raise ValueError(
                    f"line {number} does not begin with ids of a COCO {first} and {second}"
                )
            if float(row[2]) >= least:
                rated.append((int(one[1]), int(other[1])))
    return rated
