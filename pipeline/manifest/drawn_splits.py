"""Splits of images whose annotations name none, drawn by a fixed seed."""

from collections.abc import Sequence

import numpy as np

from pipeline.parts.errors import InputError

# The shares of the images; the rest is for training.
SHARES = {"val": 0.1, "test": 0.1}
# Images that a split must have at least.
FEWEST = {"train": 8, "val": 2, "test": 2}


def draw(files: Sequence[str]) -> dict[str, str]:
    """Draw a split for each image: file -> split."""
    if len(files) < sum(FEWEST.values()):
        raise InputError(
            f"the annotations name {len(files)} images or clips; training needs at least "
            f"{sum(FEWEST.values())}, "
            + ", ".join(f"{fewest} of them in {split}" for split, fewest in FEWEST.items())
        )
    order, start, drawn = (
        np.random.default_rng(0).permutation(len(files)),
        0,
        dict.fromkeys(files, "train"),
    )
    for split, share in SHARES.items():
        count = max(FEWEST[split], round(share * len(files)))
        drawn.update({files[place]: split for place in order[start : start + count]})
        start += count
    return drawn
