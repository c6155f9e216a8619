"""Splits of images whose annotations name none, drawn by a fixed seed."""

from collections.abc import Sequence

import numpy as np

from pipeline.foundation.parts.errors import InputError

# The shares of the images; the rest is for training.
SHARES = {"val": 0.1, "test": 0.1}
# Images that a split must have at least.
FEWEST = {"train": 8, "val": 2, "test": 2}


def draw(files: Sequence[str]) -> dict[str, str]:
    """Draw a split for each image: file -> split."""
    needed = sum(FEWEST.values())
    if len(files) < needed:
        of_splits = ", ".join(f"{fewest} of them in {split}" for split, fewest in FEWEST.items())
        what = "images or clips"
        if len(files) == 1:
            what = "image or clip"
        raise InputError(
            f"the annotations name {len(files)} {what}; training needs at least {needed}, "
            f"{of_splits}"
        )
    order = np.random.default_rng(0).permutation(len(files))
    split_of_image = dict.fromkeys(files, "train")
    first_of_split = 0
    for split, share in SHARES.items():
        count = max(FEWEST[split], round(share * len(files)))
        for image in order[first_of_split : first_of_split + count]:
            split_of_image[files[image]] = split
        first_of_split += count
    return split_of_image
