"""Caption augmentation in training: some tokens are masked, replaced or dropped."""

from __future__ import annotations

import numpy as np

MASKED, REPLACED = 0.5, 0.6  # of the chosen tokens: 50 % masked, 10 % replaced by any word, 40 % dropped


def augment(caption: list[int], share: float, mask: int, first_word: int, words: int,
            rng: np.random.Generator) -> list[int]:
    """Change `share` of a caption's tokens, as the released code of VSE-infinity and VSE+2AD does.

    The first and last number (<start>, <end>) stay. mask: the number that masks; a replacement is drawn from
    first_word..words-1. The result has at least one token between its ends where the caption had.
    """
    if share == 0 or len(caption) <= 2:
        return caption
    inner = caption[1:-1]
    chosen = rng.random(len(inner)) < share
    fate = rng.random(len(inner))
    drawn = rng.integers(first_word, words, len(inner)) if words > first_word else np.full(len(inner), mask)
    kept = []
    for token, change, luck, other in zip(inner, chosen, fate, drawn, strict=True):
        if not change:
            kept.append(token)
        elif luck < MASKED:
            kept.append(mask)
        elif luck < REPLACED:
            kept.append(int(other))
    return [caption[0], *(kept or inner[:1]), caption[-1]]
