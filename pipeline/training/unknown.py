"""The share of words that a text encoder does not know: it reads all of them as one and the same
word.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from pipeline.parts.errors import InputWarning

if TYPE_CHECKING:
    from pipeline.manifest import Split

# A share of unknown words above which results say little of what captions mean.
MANY = 0.05


def counts(splits: Iterable[Split]) -> dict[str, np.ndarray]:
    """What is filled with the counts of splits' captions: split -> int64 [C, 2], see
    `CaptionReader.unknown`.
    """
    return {split.name: np.zeros((len(split.caption_ids), 2), np.int64) for split in splits}


def summaries(splits: Iterable[Split], words: Mapping[str, np.ndarray]) -> list[str]:
    """Say the share of unknown words of each split, "unknown words of test: de 1.2 %, en 0.4 %", or
    warn of many.
    """
    return [line for split in splits if (line := _summary(split, words[split.name]))]


def _summary(split: Split, words: np.ndarray) -> str | None:
    of_language = (
        {"": words}
        if split.languages is None
        else {str(name): words[split.languages == name] for name in np.unique(split.languages)}
    )
    shares = {
        name: part[:, 0].sum() / max(part[:, 1].sum(), 1) for name, part in of_language.items()
    }
    line = f"unknown words of {split.name}: " + ", ".join(
        f"{name} {100 * share:.1f} %".strip() for name, share in shares.items()
    )
    if any(share > MANY for share in shares.values()):
        warnings.warn(
            f"{line}; above {100 * MANY:.0f} % retrieval suffers: train on captions like them, lower "
            "training.NAME.minimum_count, or take --text bert with a BERT of their language",
            InputWarning,
            stacklevel=2,
        )
        return None
    return line
