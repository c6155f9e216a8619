"""Captions of one image, recognised by the scores alone: whether a matrix of unknown order pairs
anything.

In a good system an image's best captions have this image as their best, and are alike beyond what
they share with it: they are several descriptions of one thing. Neither depends on the order of rows
and columns. In random scores the best captions of an image are not alike, in an untrained head they
have other best images.
"""

import numpy as np

from pipeline.foundation.evaluation.retrieval.blocks import Floats, Ids
from pipeline.foundation.evaluation.retrieval.similarity import (
    Scores,
    Similarity,
    of_direction,
    select,
)
from pipeline.foundation.evaluation.retrieval.top import top

FEWEST = 50  # fewer images say nothing
IMAGES = 48  # images whose captions are looked for
OTHERS = 1000  # other images and captions by which these are compared
# The share of captions whose best image is theirs, and their mean correlation beyond what they
# share with the image: 0.6 and 0.0 in random scores.
MUTUAL = 0.65
BEYOND = 0.15
# Scores that correlate more have too few dimensions to tell.
ALIKE = 0.9


def found(source: Scores) -> bool:
    """Whether images have captions of their own, by a sample; False if each has one caption, and
    for few images.
    """
    images, captions = source.shape
    captions_of_image = round(captions / images)
    if captions_of_image < 2 or images < FEWEST:
        return False
    matrix = of_direction(source, "i2t")
    draw = np.random.default_rng(0)
    rows = np.sort(draw.choice(images, min(images, IMAGES), replace=False))
    others = draw.choice(images, min(images, OTHERS), replace=False)
    sampled = np.union1d(rows, others)
    candidates = select(source, rows, np.arange(captions))
    best = top(candidates, "i2t", captions_of_image).places
    columns, column = np.unique(best, return_inverse=True)
    of_best = _block(matrix, sampled, columns)[:, column.reshape(-1)]
    best_image = sampled[of_best.argmax(0)].reshape(best.shape)
    mutual = best_image == rows[:, None]
    if mutual.mean() < MUTUAL:
        return False
    some_captions = np.sort(draw.choice(captions, min(captions, OTHERS), replace=False))
    of_some = _block(matrix, sampled, some_captions)
    place = np.searchsorted(sampled, rows)
    plain, beyond = _alike(of_best, of_some, place, captions_of_image)
    return plain < ALIKE and beyond >= BEYOND


def _block(matrix: Similarity, rows: Ids, columns: Ids) -> Floats:
    cells: Floats = matrix.block(rows, columns).astype(np.float64)
    return cells


def _alike(of_best: Floats, some: Floats, rows: Ids, count: int) -> tuple[float, float]:
    """The mean correlation of an image's captions over other images; and beyond their correlation
    with that image.
    """
    mean = some.mean(1, keepdims=True)
    some = some - mean
    profiles = _unit((some - some.mean(0)).T).T
    of_best = of_best - mean
    plain = []
    beyond = []
    for start, row in zip(range(0, of_best.shape[1], count), rows, strict=True):
        others = np.arange(len(some)) != row
        of_captions = _unit(of_best[others, start : start + count])
        likeness = profiles @ profiles[row]
        of_image = _unit(likeness[others, None])
        rest = of_captions - of_image @ (of_image.T @ of_captions)
        plain.append(_mean_product(of_captions))
        beyond.append(_mean_product(_unit(rest)))
    return float(np.mean(plain)), float(np.mean(beyond))


def _unit(columns: Floats) -> Floats:
    centred = columns - columns.mean(0)
    length = np.linalg.norm(centred, axis=0)
    result: Floats = centred / np.where(length > 0, length, 1)
    return result


def _mean_product(columns: Floats) -> float:
    count = columns.shape[1]
    products = (columns.T @ columns).sum() - (columns**2).sum()
    return float(products / (count * (count - 1)))
