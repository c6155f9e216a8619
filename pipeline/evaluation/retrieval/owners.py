"""Owners: the image that each caption was written for, as a row, or NO_IMAGE for a caption that belongs to no image.

As an index of an array −1 is the last row, so owners are an index here and nowhere else.
"""

import numpy as np

from pipeline.evaluation.retrieval.blocks import Ids

NO_IMAGE = -1


def of_owners(values: np.ndarray, owner: Ids, missing: object = NO_IMAGE) -> np.ndarray:
    """Look up what captions' images have.

    Args:
        values: [I, ...], of each image.
        owner: Int64, the row of each caption's image, or NO_IMAGE, in any shape.
        missing: The value for a caption that belongs to no image.

    Returns:
        The values in the shape of `owner`.
    """
    found = np.full((*owner.shape, *values.shape[1:]), missing, values.dtype)
    has_image = owner >= 0
    found[has_image] = values[owner[has_image]]
    return found


def renumbered(owner: Ids, images: Ids, count: int) -> Ids:
    """Number captions' images anew.

    Args:
        owner: Int64 [C], rows among all images.
        images: Int64, the rows that stay, in their new order.
        count: How many images there are in all.

    Returns:
        Int64 [C], each caption's image as a place in `images`; NO_IMAGE if it does not stay.
    """
    place = np.full(count, NO_IMAGE, np.int64)
    place[images] = np.arange(len(images))
    return of_owners(place, owner)
