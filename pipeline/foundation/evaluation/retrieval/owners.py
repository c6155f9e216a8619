"""Owners: the image that each caption was written for, as a row, or NO_IMAGE for a caption that
belongs to no image.

As an index of an array −1 is the last row, so owners are an index here and nowhere else.
"""

import numpy as np

from pipeline.foundation.evaluation.retrieval.blocks import Ids

NO_IMAGE = -1


def of_owners(values: np.ndarray, owner: Ids, missing: object = NO_IMAGE) -> np.ndarray:
    """Look up the values [I, ...] of captions' images by owner (int64, any shape); `missing`
    without an image.
    """
    owned = np.full((*owner.shape, *values.shape[1:]), missing, values.dtype)
    has_image = owner >= 0
    owned[has_image] = values[owner[has_image]]
    return owned


def numbered(owner: Ids, images: int) -> Ids:
    """Number the captions of each image from 0, in order: int64 [C]; 0 for those without an
    image.
    """
    order = np.argsort(owner, kind="stable")
    count = np.bincount(owner + 1, minlength=images + 1)
    first = np.repeat(np.cumsum(count) - count, count)
    number = np.empty(len(owner), np.int64)
    number[order] = np.arange(len(owner)) - first
    number[owner < 0] = 0
    return number


def renumbered(owner: Ids, images: Ids, count: int) -> Ids:
    """Number captions' images (int64 [C], of `count` in all) by their places in `images`; NO_IMAGE
    if missing.
    """
    place = np.full(count, NO_IMAGE, np.int64)
    place[images] = np.arange(len(images))
    return of_owners(place, owner)
