"""A manifest's numbers, and what of them its card states."""

from collections.abc import Mapping

import numpy as np

from pipeline.foundation.manifest.dataset import Dataset, Statistics
from pipeline.foundation.manifest.table import Manifest

PARTS = 16  # that are counted one after another: of five million captions at once 2 GB are needed
WHAT = {name: name.replace("_", " ") for name in Statistics.model_fields}
WHAT["shortest"] = "characters of the shortest caption"
WHAT["longest"] = "characters of the longest caption"


def statistics_of(manifest: Manifest) -> dict[str, Statistics]:
    """Count a manifest: split -> its statistics, all of them known."""
    splits = sorted(manifest.images["split"].unique())
    return {split: _count(manifest, split) for split in splits}


def _count(manifest: Manifest, split: str) -> Statistics:
    rows = manifest.rows(["split", "caption"], lambda rows: rows[rows["split"] == split])
    captions = rows["caption"]
    is_of_split = manifest.images["split"] == split
    # Equal captions are in one part.
    hashes = np.fromiter(map(hash, captions), np.int64, len(captions))
    part_of_caption = hashes % PARTS
    unique_captions = 0
    for part in range(PARTS):
        unique_captions += captions[part_of_caption == part].nunique()
    lengths = captions.str.len()
    return Statistics(
        images=int(is_of_split.sum()),
        captions=len(captions),
        unique_captions=unique_captions,
        shortest=int(lengths.min()),
        longest=int(lengths.max()),
    )


def compared(card: Dataset, manifest: Manifest) -> tuple[list[str], list[str], list[str]]:
    """The differences of a manifest from what its card states; what agrees; what is not compared,
    and why.
    """
    counted: dict[str, Statistics] = {}
    if card.statistics:
        counted = statistics_of(manifest)
    no_rows = Statistics(images=0, captions=0)
    differing: list[str] = []
    # Name -> splits.
    agreeing: dict[str, list[str]] = {name: [] for name in WHAT}
    unstated: dict[str, list[str]] = {name: [] for name in WHAT}
    for split, expected in card.statistics.items():
        of_manifest = counted.get(split, no_rows).model_dump()
        for statistic, stated in expected.model_dump().items():
            count = of_manifest[statistic]
            if stated is None:
                unstated[statistic].append(split)
            elif count == stated:
                agreeing[statistic].append(split)
            else:
                differing.append(f"{split}: {WHAT[statistic]}: expected {stated}, found {count}")
    alike = _spoken(agreeing)
    silent = "; ".join(_spoken(unstated))
    left = []
    if silent:
        reason = card.unstated or "the card does not state them"
        left.append(f"{silent}: {reason}")
    if card.languages == manifest.languages != []:
        alike.append("languages")
    elif manifest.languages == [] and len(card.languages) == 1:
        left.append("languages: the annotations do not name them")
    elif card.languages:
        expected_languages = ", ".join(card.languages)
        languages = ", ".join(manifest.languages) or "none"
        differing.append(f"languages: expected {expected_languages}, found {languages}")
    return differing, alike, left


def _spoken(splits_of: Mapping[str, list[str]]) -> list[str]:
    """Name numbers of the same splits together, such as "images, captions (train, test)"."""
    together: dict[str, list[str]] = {}
    for statistic, splits in splits_of.items():
        names = together.setdefault(", ".join(splits), [])
        names.append(WHAT[statistic])
    return [f"{', '.join(names)} ({splits})" for splits, names in together.items() if splits]
