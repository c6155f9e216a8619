"""The share of words that a text encoder does not know: it reads all of them as one and the same
word.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from pipeline.foundation.parts.errors import InputWarning

if TYPE_CHECKING:
    from pipeline.foundation.manifest import Split

# A share of unknown words above which results say little of what captions mean.
MANY = 0.05


def counts(splits: Iterable[Split]) -> dict[str, np.ndarray]:
    """What is filled with the counts of splits' captions: split -> int64 [C, 2], see
    `CaptionReader.unknown`.
    """
    return {split.name: np.zeros((len(split.caption_ids), 2), np.int64) for split in splits}


def summaries(
    splits: Iterable[Split], words: Mapping[str, np.ndarray], trained_on: str
) -> list[str]:
    """Say the share of unknown words of each split, "unknown words of test: de 1.2 %, en 0.4 %", or
    warn of many. trained_on: the data set whose words the text encoder knows.
    """
    lines = []
    for split in splits:
        line = _summary(split, words[split.name], trained_on)
        if line is not None:
            lines.append(line)
    return lines


def _summary(split: Split, words: np.ndarray, trained_on: str) -> str | None:
    of_language = {"": words}
    if split.languages is not None:
        of_language = {}
        for language in np.unique(split.languages):
            of_language[str(language)] = words[split.languages == language]
    shares = []
    listed = []
    for name, part in of_language.items():
        unknown, all_words = part.sum(0)
        share = unknown / max(all_words, 1)
        shares.append(share)
        listed.append(f"{name} {100 * share:.1f} %".strip())
    line = f"unknown words of {split.name}: {', '.join(listed)}"
    if any(share > MANY for share in shares):
        warnings.warn(
            f"{line}; above {100 * MANY:.0f} % retrieval suffers: train on captions like them, lower "
            f"training.{trained_on}.minimum_count, or take --text bert with a BERT of their language",
            InputWarning,
            stacklevel=2,
        )
        return None
    return line
