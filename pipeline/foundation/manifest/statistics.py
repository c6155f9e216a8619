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
    # Equal captions are in one part.
    parts = np.fromiter(map(hash, captions), np.int64, len(captions)) % PARTS
    lengths = captions.str.len()
    return Statistics(
        images=int((manifest.images["split"] == split).sum()),
        captions=len(captions),
        unique_captions=sum(captions[parts == part].nunique() for part in range(PARTS)),
        shortest=int(lengths.min()),
        longest=int(lengths.max()),
    )


def compared(card: Dataset, manifest: Manifest) -> tuple[list[str], list[str], list[str]]:
    """The differences of a manifest from what its card states; what agrees; what is not compared,
    and why.
    """
    counted = statistics_of(manifest) if card.statistics else {}
    differing: list[str] = []
    # Name -> splits.
    agreeing: dict[str, list[str]] = {name: [] for name in WHAT}
    unstated: dict[str, list[str]] = {name: [] for name in WHAT}
    for split, expected in card.statistics.items():
        here = counted.get(split, Statistics(images=0, captions=0)).model_dump()
        for name, value in expected.model_dump().items():
            if value is None:
                unstated[name].append(split)
            elif here[name] == value:
                agreeing[name].append(split)
            else:
                differing.append(f"{split}: {WHAT[name]}: expected {value}, found {here[name]}")
    alike = _spoken(agreeing)
    silent = "; ".join(_spoken(unstated))
    left = []
    if silent:
        left.append(f"{silent}: {card.unstated or 'the card does not state them'}")
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
    for name, splits in splits_of.items():
        names = together.setdefault(", ".join(splits), [])
        names.append(WHAT[name])
    return [f"{', '.join(names)} ({splits})" for splits, names in together.items() if splits]
