"""Captions of one image, recognised by the scores alone: whether a matrix of unknown order pairs
anything.

In a good system an image's best captions have this image as their best, and are alike beyond what
they share with it: they are several descriptions of one thing. Neither depends on the order of rows
and columns. In random scores the best captions of an image are not alike, in an untrained head they
have other best images.
"""

import numpy as np

from pipeline.evaluation.retrieval.blocks import Floats, Ids
from pipeline.evaluation.retrieval.similarity import Scores, Similarity, of_direction, select
from pipeline.evaluation.retrieval.top import top

# Fewer images say nothing; those whose captions are looked for; other images and captions by which
# these are compared.
FEWEST, IMAGES, OTHERS = 50, 48, 1000
# The share of captions whose best image is theirs, and their mean correlation beyond what they
# share with the image: 0.6 and 0.0 in random scores. Scores that correlate more than ALIKE have too
# few dimensions to tell.
MUTUAL, BEYOND, ALIKE = 0.65, 0.15, 0.9


def found(source: Scores) -> bool:
    """Whether images have captions of their own, by a sample; False if each has one caption, and
    for few images.
    """
    matrix, (images, captions) = of_direction(source, "i2t"), source.shape
    each, draw = round(captions / images), np.random.default_rng(0)
    if each < 2 or images < FEWEST:
        return False
    rows = np.sort(draw.choice(images, min(images, IMAGES), replace=False))
    sampled = np.union1d(rows, draw.choice(images, min(images, OTHERS), replace=False))
    best = top(select(source, rows, np.arange(captions)), "i2t", each).places
    columns, column = np.unique(best, return_inverse=True)
    of_best = _block(matrix, sampled, columns)[:, column.reshape(-1)]
    mutual = sampled[of_best.argmax(0)].reshape(best.shape) == rows[:, None]
    if mutual.mean() < MUTUAL:
        return False
    some = _block(
        matrix, sampled, np.sort(draw.choice(captions, min(captions, OTHERS), replace=False))
    )
    plain, beyond = _alike(of_best, some, np.searchsorted(sampled, rows), each)
    return plain < ALIKE and beyond >= BEYOND


def _block(matrix: Similarity, rows: Ids, columns: Ids) -> Floats:
    cells: Floats = matrix.block(rows, columns).astype(np.float64)
    return cells


def _alike(of_best: Floats, some: Floats, rows: Ids, each: int) -> tuple[float, float]:
    """The mean correlation of an image's captions over other images; and beyond their correlation
    with that image.
    """
    mean = some.mean(1, keepdims=True)
    profiles = _unit((some - mean - (some - mean).mean(0)).T).T
    plain, beyond = [], []
    for start, row in zip(range(0, of_best.shape[1], each), rows, strict=True):
        apart = np.arange(len(some)) != row
        of_captions = _unit((of_best - mean)[apart, start : start + each])
        of_image = _unit((profiles @ profiles[row])[apart, None])
        plain.append(_mean_product(of_captions))
        beyond.append(_mean_product(_unit(of_captions - of_image @ (of_image.T @ of_captions))))
    return float(np.mean(plain)), float(np.mean(beyond))


def _unit(columns: Floats) -> Floats:
    centred = columns - columns.mean(0)
    length = np.linalg.norm(centred, axis=0)
    result: Floats = centred / np.where(length > 0, length, 1)
    return result


def _mean_product(columns: Floats) -> float:
    count = columns.shape[1]
    return float(((columns.T @ columns).sum() - (columns**2).sum()) / (count * (count - 1)))
