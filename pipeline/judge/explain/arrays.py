"""Scores in memory as a measurement has them: products of vectors, and values rounded to fewer
bits.
"""

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.foundation.evaluation.retrieval import (
    Embeddings,
    Ids,
    Lists,
    Scores,
    Similarity,
    rounding,
)
from pipeline.foundation.evaluation.retrieval.blocks import Matrix, check_floats
from pipeline.foundation.evaluation.retrieval.rounding import Precision, round_into
from pipeline.foundation.evaluation.retrieval.similarity import (
    Directions,
    PerDirection,
    first_equal,
    of_direction,
)
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.explain.differences import Measurement
from pipeline.judge.explain.given import Given

Cells = npt.NDArray[Any]
# Bytes that are rounded at once, which stay in the processor's cache.
CACHED = 1 << 20
# The share of this machine's memory that scores may fill.
SHARE = 0.4


def read(given: Given, wanted: Measurement) -> Scores:
    """The scores that are given, rounded."""
    if wanted.scores == "given" and not wanted.joined:
        return given.scores
    if isinstance(given.scores, Lists):
        return given.scores.changed(lambda scores: _finite(rounding.rounded(scores, wanted.scores)))
    if isinstance(given.scores, PerDirection):
        i2t = of_direction(given.scores, "i2t")
        t2i = of_direction(given.scores, "t2i")
        return Directions(_of_matrix(given, i2t, wanted), _of_matrix(given, t2i, wanted))
    return _of_matrix(given, given.scores, wanted)


def _of_matrix(given: Given, source: Similarity, wanted: Measurement) -> Matrix:
    if not wanted.joined:
        return _read(source, wanted.scores)
    cells = _read(source, "given").values
    return Matrix(rounded(joined(cells.T, given.owner).T, wanted.scores))


def _finite(scores: Cells) -> Cells:
    """Scores that can be ranked; refused where some are too large for their type."""
    if not np.isfinite(scores).all():
        raise InputError("a score is too large for its type")
    return scores.astype(np.float64)


def joined(of_captions: Cells, owner: Ids) -> Cells:
    """Each caption's values [C, ...], replaced by the mean of its image's captions; those without
    an image stay.
    """
    means = of_captions.copy()
    owned = np.flatnonzero(owner >= 0)
    owned = owned[np.argsort(owner[owned], kind="stable")]
    _, first, group, count = np.unique(
        owner[owned], return_index=True, return_inverse=True, return_counts=True
    )
    sums = np.add.reduceat(of_captions[owned], first)
    means[owned] = (sums / count[:, None]).astype(of_captions.dtype)[group]
    return means


def _read(source: Similarity, precision: Precision) -> Matrix:
    """Read scores block by block, rounded."""
    _require_room(source.shape, 4)
    cells = np.empty(source.shape, np.float32)
    for rows, columns in source.grid(source.shape, CACHED):
        round_into(cells[rows, columns], source.block(rows, columns), precision)
    return Matrix(cells)


def multiplied(given: Given, wanted: Measurement) -> Cells:
    """Multiply vectors; equal ones get equal scores, which one product alone does not promise."""
    assert given.vectors is not None
    images, captions = given.vectors
    if wanted.tokens is not None and given.embed is not None:
        captions = given.embed(wanted.tokens)
    images = _as_measured(images, wanted, wanted.unit in ("images", "both"))
    is_unit = wanted.unit in ("captions", "both")
    if wanted.joined:
        captions = _floats(captions)
        if is_unit:
            captions = _unit(captions)
        captions = joined(captions, given.owner)
    captions = _as_measured(captions, wanted, is_unit)
    _require_room(given.shape, max(images.itemsize, captions.itemsize))
    cells = images @ captions.T
    of_images, of_captions = Embeddings(images, captions).equal
    _equalise(cells, of_images)
    _equalise(cells.T, of_captions)
    return cells


def _as_measured(vectors: Cells, wanted: Measurement, is_unit: bool) -> Cells:
    if is_unit:
        return rounded(_unit(vectors), wanted.vectors)
    return rounded(_floats(vectors), wanted.vectors)


def _equalise(rows: Cells, labels: Ids) -> None:
    """Give rows of equal vectors the scores of the first one."""
    equal = first_equal(labels)
    if equal is not None:
        repeated = np.flatnonzero(equal != np.arange(len(equal)))
        rows[repeated] = rows[equal[repeated]]


def _require_room(shape: tuple[int, int], bytes_a_cell: int) -> None:
    """Refuse scores that take too much of this machine's memory."""
    images, captions = shape
    needed = images * captions * bytes_a_cell
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > SHARE * memory:
        scores = f"the scores of {images:,} images x {captions:,} captions"
        raise InputError(
            f"{scores} take {needed / 1e9:.1f} GB, and this machine has {memory / 1e9:.1f}: give a "
            "part of them, or scores as a .npy file"
        )


def _floats(vectors: Cells) -> Cells:
    check_floats(vectors, "vectors", ("items", "dimension"))
    if vectors.dtype.itemsize == 8:
        return np.asarray(vectors, np.float64)
    return np.asarray(vectors, np.float32)


def _unit(vectors: Cells) -> Cells:
    exact_vectors = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(exact_vectors, axis=1, keepdims=True)
    unit_vectors = exact_vectors / np.where(lengths > 0, lengths, 1)
    return unit_vectors.astype(_floats(vectors).dtype)


def rounded(values: Cells, precision: Precision) -> Cells:
    """Round values to a type of two bytes, half to even, and keep them as float32; "given" leaves
    them.
    """
    if precision == "given":
        return values
    return _read(Matrix(values), precision).values
