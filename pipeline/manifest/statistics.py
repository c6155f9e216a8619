"""A manifest's numbers, and what of them its card states."""

from collections.abc import Mapping

import numpy as np

from pipeline.manifest.dataset import Dataset, Statistics
from pipeline.manifest.table import Manifest

PARTS = 16  # that are counted one after another: of five million captions at once 2 GB are needed
WHAT = {name: name.replace("_", " ") for name in Statistics.model_fields} | {
    name: f"characters of the {name} caption" for name in ("shortest", "longest")
}


def statistics_of(manifest: Manifest) -> dict[str, Statistics]:
    """Count a manifest: split -> its statistics, all of them known."""

    def count(split: str) -> Statistics:
        captions = manifest.rows(["split", "caption"], lambda rows: rows[rows["split"] == split])[
            "caption"
        ]
        parts = (
            np.fromiter(map(hash, captions), np.int64, len(captions)) % PARTS
        )  # equal captions are in one part
        texts, lengths = (
            sum(captions[parts == part].nunique() for part in range(PARTS)),
            captions.str.len(),
        )
        images = int((manifest.images["split"] == split).sum())
        return Statistics(
            images=images,
            captions=len(captions),
            unique_captions=texts,
            shortest=int(lengths.min()),
            longest=int(lengths.max()),
        )

    return {split: count(split) for split in sorted(manifest.images["split"].unique())}


def compared(card: Dataset, manifest: Manifest) -> tuple[list[str], list[str], list[str]]:
    """The differences of a manifest from what its card states; what agrees; what is not compared,
    and why.
    """
    counted = statistics_of(manifest) if card.statistics else {}
    differing: list[str] = []
    agreeing, unstated = ({name: list[str]() for name in WHAT} for _ in range(2))  # name -> splits
    for split, expected in card.statistics.items():
        here = counted.get(split, Statistics(images=0, captions=0)).model_dump()
        for name, value in expected.model_dump().items():
            if value is None:
                unstated[name].append(split)
            elif here[name] == value:
                agreeing[name].append(split)
            else:
                differing.append(f"{split}: {WHAT[name]}: expected {value}, found {here[name]}")
    alike, silent = _spoken(agreeing), "; ".join(_spoken(unstated))
    left = [f"{silent}: {card.unstated or 'the card does not state them'}"] if silent else []
    if card.languages == manifest.languages != []:
        alike.append("languages")
    elif manifest.languages == [] and len(card.languages) == 1:
        left.append("languages: the annotations do not name them")
    elif card.languages:
        differing.append(
            f"languages: expected {', '.join(card.languages)}, found "
            f"{', '.join(manifest.languages) or 'none'}"
        )
    return differing, alike, left


def _spoken(splits_of: Mapping[str, list[str]]) -> list[str]:
    """Name numbers of the same splits together, such as "images, captions (train, test)"."""
    together: dict[str, list[str]] = {}
    for name, splits in splits_of.items():
        together.setdefault(", ".join(splits), []).append(WHAT[name])
    return [f"{', '.join(names)} ({splits})" for splits, names in together.items() if splits]
