"""A part of the training images, for sample efficiency (Geigle et al., figure 3)."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from pipeline.errors import InputError
from pipeline.manifest import Split


def subset(split: Split, images: int | None, seed: int) -> Split:
    """Keep some images, chosen by a hash of the seed and the image's id.

    The choice does not depend on the images' order, and a smaller subset lies within a larger one of the same seed.
    """
    if images is None:
        return split
    if images > len(split.image_ids):
        raise InputError(f"training.NAME.images: expected at most the {len(split.image_ids)} images of {split.name}, "
                         f"got {images}")
    hashes = np.array([int.from_bytes(blake2b(f"{seed} {image}".encode(), digest_size=8).digest(), "big")
                       for image in split.image_ids.tolist()], np.uint64)
    keep = np.zeros(len(hashes), dtype=bool)
    keep[np.argsort(hashes, kind="stable")[:images]] = True
    return split.only(keep)
