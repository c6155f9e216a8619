"""COCO's test split with pairs that its captions do not tell of: ECCV Caption and CxC.

ECCV Caption (Chun et al., ECCV 2022) adds pairs that people confirmed, of 1,261 images and 1,332 captions; CxC
(Crisscrossed Captions, Parekh et al., EACL 2021) those that people judged similar. The package `eccv_caption` has both.
"""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.evaluation.retrieval.collection import Collection, Side
from pipeline.evaluation.retrieval.relevance import Positives, Relevance
from pipeline.parts.errors import InputError

METRICS: dict[str, tuple[str, ...]] = {"eccv": ("mAP@R", "Rprec", "R@1", "R@5", "R@10"), "cxc": ("R@1", "R@5", "R@10")}
"""What is measured by each set of pairs."""


class Extended(NamedTuple):
    """The package's 5,000 images and 25,000 captions as rows and columns of a pool, and what is right among them."""

    rows: Ids
    columns: Ids
    relevance: dict[str, Relevance]


def eccv_caption(collection: Collection, truth: Any = None) -> Extended:
    """The part of the pool that the package has, and what is right in it by ECCV Caption ("eccv") and CxC ("cxc")."""
    truth = truth or pairs_of_package()
    rows, columns = _pool(truth.coco_gts, collection)
    few = Collection(collection.image_ids[rows], collection.caption_ids[columns],
                     np.searchsorted(rows, collection.caption_image[columns]))
    return Extended(rows, columns, {name: _relevance(pairs, few, name) for name, pairs in (
        ("eccv", truth.eccv_gts), ("cxc", truth.cxc_gts))})


def pairs_of_package() -> Any:
    """Load the package's pairs."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it tells that it reads JSON by the standard library
            from eccv_caption import Metrics
    except ImportError:
        raise InputError("ECCV Caption and CxC need the package eccv_caption: pip install 'vse-pipeline[eccv]'"
                         ) from None
    return Metrics()


def _pool(pairs: Mapping[str, Mapping[int, list[int]]], collection: Collection) -> tuple[Ids, Ids]:
    """The rows and columns of the package's images and captions, in our order."""
    for what, ours, theirs in (("images", collection.image_ids, pairs["i2t"]),
                               ("captions", collection.caption_ids, pairs["t2i"])):
        missing = sorted(set(theirs) - set(ours.tolist()))
        if missing:
            raise InputError(f"{len(missing)} of the {len(theirs)} {what} of ECCV Caption are not here, {missing[0]} "
                             "for one: it is defined for COCO's test split (Karpathy's), by COCO's own ids")
    rows = np.flatnonzero(np.isin(collection.image_ids, list(pairs["i2t"])))
    columns = np.flatnonzero(np.isin(collection.caption_ids, list(pairs["t2i"])))
    owners = collection.image_ids[collection.caption_image[columns]]
    for caption, image in zip(collection.caption_ids[columns].tolist(), owners.tolist(), strict=True):
        if pairs["t2i"][caption] != [image]:
            raise InputError(f"caption {caption} is of image {image} here, but of {pairs['t2i'][caption][0]} in ECCV "
                             "Caption: these are not COCO's own ids")
    return rows, columns


def _relevance(pairs: Mapping[str, Mapping[int, Iterable[int]]], collection: Collection, name: str) -> Relevance:
    return Relevance.of_directions(positives_of(pairs["i2t"], collection, "image", name),
                                   positives_of(pairs["t2i"], collection, "caption", name), collection.caption_image)


def positives_of(pairs: Mapping[int, Iterable[int]], collection: Collection, side: Side, name: str) -> Positives:
    """Query id -> ids of right candidates, as a sparse relation."""
    listed = [(query, candidate) for query, candidates in pairs.items() for candidate in set(candidates)]
    ids = np.array(listed, np.int64).reshape(-1, 2)
    query = collection.require(side, ids[:, 0], name)
    candidate = collection.require("caption" if side == "image" else "image", ids[:, 1], name)
    order = np.lexsort((candidate, query))
    return Positives.of_pairs(query[order], candidate[order], len(collection.ids(side)))
