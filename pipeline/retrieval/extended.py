"""COCO's test split with the pairs that its captions do not tell of: ECCV Caption and CxC.

ECCV Caption (Chun et al., ECCV 2022) adds pairs that people confirmed, of 1,261 images and 1,332 captions; CxC
(Crisscrossed Captions, Parekh et al., EACL 2021) those that people judged similar. Both come with the package
`eccv_caption`, which computes the numbers here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pipeline.errors import InputError
from pipeline.retrieval.blocks import Ids
from pipeline.retrieval.metrics import RECALLS
from pipeline.retrieval.similarity import PerDirection, Similarity, select
from pipeline.retrieval.top import top


def eccv_caption(scores: Similarity | PerDirection, image_ids: Ids, caption_ids: Ids, caption_image: Ids, seed: int = 0,
                 block_megabytes: float = 32, progress: Callable[[int], object] = lambda queries: None,
                 truth: Any = None) -> dict[str, dict[str, Mapping[str, float]]]:
    """mAP@R, R-Precision and R@1 of ECCV Caption, and R@1, 5, 10 of CxC: {set: {measure: {i2t, t2i}}} in percent.

    scores: [I, C]; image_ids [I], caption_ids [C]: COCO's own. The pool is the package's 5,000 images and 25,000
    captions, five an image; others are left out. Equally similar candidates are put in a random order, by `seed`;
    how many queries have some among those that count is told under "tied queries". truth: the package's `Metrics`,
    or one with fewer pairs.

    Raises InputError where the package is not installed, where the pool lacks one of its images or captions, or
    where a caption is another image's there.
    """
    truth = truth or _truth()
    rows, columns = _pool(truth.coco_gts, image_ids, caption_ids, caption_image)
    pool, generator = select(scores, rows, columns), np.random.default_rng(seed)
    retrieved: dict[str, dict[int, list[int]]] = {}
    tied = {}
    for way, queries, candidates in (("i2t", image_ids[rows], caption_ids[columns]),
                                     ("t2i", caption_ids[columns], image_ids[rows])):
        deepest = max(len(items) for pairs in (truth.eccv_gts, truth.cxc_gts) for items in pairs[way].values())
        k = min(max(deepest, *RECALLS), len(candidates))
        best = top(pool, way, k, generator, block_megabytes, progress)  # type: ignore[arg-type]
        retrieved[way] = dict(zip(queries.tolist(), candidates[best.places].tolist(), strict=True))
        tied[way] = int(best.tied.sum())
    eccv = truth.eccv_metrics(retrieved, "all")
    return {
        "eccv": {"mAP@R": _percent(eccv["eccv_map_at_r"]), "R-Precision": _percent(eccv["eccv_rprecision"]),
                 "R@1": _percent(eccv["eccv_r1"])},
        "cxc": {f"R@{k}": _percent(truth.cxc_recalls(retrieved, "all", K=k)) for k in RECALLS},
        "both": {"tied queries": tied}}


# Name of an extension -> its measurement.
EXTENDED = {"eccv_caption": eccv_caption}


def _truth() -> Any:
    """The package's pairs."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it tells that it reads JSON by the standard library
            from eccv_caption import Metrics
    except ImportError:
        raise InputError("ECCV Caption and CxC need the package eccv_caption: pip install 'vse-pipeline[eccv]'"
                         ) from None
    return Metrics()


def _pool(pairs: dict[str, dict[int, list[int]]], image_ids: Ids, caption_ids: Ids, caption_image: Ids
          ) -> tuple[Ids, Ids]:
    """The rows and columns of the package's images and captions, in our order."""
    for what, ours, theirs in (("images", image_ids, pairs["i2t"]), ("captions", caption_ids, pairs["t2i"])):
        missing = sorted(set(theirs) - set(ours.tolist()))
        if missing:
            raise InputError(f"{len(missing)} of the {len(theirs)} {what} of ECCV Caption are not here, {missing[0]} "
                             "for one: it is defined for COCO's test split (Karpathy's), by COCO's own ids")
    rows = np.flatnonzero(np.isin(image_ids, list(pairs["i2t"])))
    columns = np.flatnonzero(np.isin(caption_ids, list(pairs["t2i"])))
    for caption, image in zip(caption_ids[columns].tolist(), image_ids[caption_image[columns]].tolist(), strict=True):
        if pairs["t2i"][caption] != [image]:
            raise InputError(f"caption {caption} is of image {image} here, but of {pairs['t2i'][caption][0]} in ECCV "
                             "Caption: these are not COCO's own ids")
    return rows, columns


def _percent(shares: dict[str, float]) -> dict[str, float]:
    return {way: 100 * float(share) for way, share in shares.items()}
