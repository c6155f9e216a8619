"""Caption augmentation in training: some words are masked, replaced or dropped."""

from __future__ import annotations

import numpy as np

from pipeline.text.base import Text, Words

MASKED, REPLACED = 0.5, 0.6  # of the chosen words: 50 % masked, 10 % replaced by anything, 40 % dropped


def augment(words: Words, share: float, text: Text, rng: np.random.Generator) -> Words:
    """Change some of a caption's words, as the released code of VSE∞ and VSE+2AD does.

    A word that is cut into pieces is masked or dropped as a whole, and replaced piece by piece, each by any other
    piece. One word remains if there was one.
    """
    if share == 0:
        return words
    chosen = rng.random(len(words)) < share
    fate = rng.random(len(words))
    kept = []
    for word, change, luck in zip(words, chosen, fate, strict=True):
        if not change:
            kept.append(word)
        elif luck < MASKED:
            kept.append([text.mask] * len(word))
        elif luck < REPLACED:
            kept.append(rng.choice(text.others, len(word)).tolist())
    return kept or words[:1]
