"""Matrices in which one value stands for "no candidate": ALBEF's, BLIP's and LAVIS' evaluation
scores each query's first k candidates, and leaves -100 at all others; summed over N processes,
-100 N.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation.evaluation.retrieval import Direction, Ids, Lists
from pipeline.foundation.evaluation.retrieval.blocks import refuse_nonfinite_pairs
from pipeline.foundation.evaluation.retrieval.lists import Listed
from pipeline.judge.systems.scores.foreign.identified import Scores, in_words

FILL = -100
MOST_PROCESSES = 1024
# The largest share of pairs that were scored: of a matrix whose scores may be of either direction,
# and of one whose direction is known. And how many pairs there are at most.
MOST = 0.5
MOST_OF_DIRECTION = 0.95
MOST_PAIRS = 1 << 26
# The least share of queries with as many candidates as most of them.
ALIKE = 0.9
ROWS = 256  # that are looked at together
LOOKED_AT = 5  # rows, in one of which the value is found


def only_scored(
    whole: Scores, matrices: Mapping[Direction | None, Any], name: str | Path
) -> Scores:
    """The candidates that were scored, where the other pairs have one value that says they were
    not; the scores as they are for any other matrix, and for one that does not tell whose
    candidates were scored.

    Args:
        whole: The scores of all pairs.
        matrices: One [I, C], under None, or one for each direction.
        name: What messages call them.

    Raises:
        InputError: If a score is NaN or infinite.
    """
    found = _lists(matrices, str(name))
    if found is None:
        return whole
    lists, said = found
    return whole._replace(
        source=lists,
        read_as=in_words(whole.read_as, said),
        otherwise={"marks as scores": lambda: whole},
    )


def _lists(matrices: Mapping[Direction | None, Any], name: str) -> tuple[Lists, str] | None:
    """The pairs that were scored, and which value the others have; None where no value marks
    them.
    """
    fill_of: dict[Direction | None, float | None] = {}
    for way, matrix in matrices.items():
        fill_of[way] = _fill(matrix, MOST if way is None else MOST_OF_DIRECTION)
    fills = [f"{fill:g}" for fill in fill_of.values() if fill is not None]
    are_few = all(matrix.shape[0] * matrix.shape[1] <= MOST_PAIRS for matrix in matrices.values())
    if not fills or (len(fills) < len(matrices) and not are_few):
        return None
    listed: dict[Direction, Listed] = {}
    for way, matrix in matrices.items():
        images, captions, scores = _scored(matrix, fill_of[way])
        refuse_nonfinite_pairs(scores, images, captions, name)
        direction = way or _direction(images, captions)
        if direction is None:
            return None
        if direction == "i2t":
            listed["i2t"] = Listed(images, captions, scores)
        else:
            listed["t2i"] = Listed(captions, images, scores)
    shape = next(iter(matrices.values())).shape
    values = " and ".join(dict.fromkeys(fills))
    said = f"{values} for pairs that were not scored, which are no candidates"
    return Lists(shape, listed, name), said


def _direction(images: Ids, captions: Ids) -> Direction | None:
    """The direction of the scored pairs of one matrix: candidates of images, as many for each that
    has some, or of captions; None where that does not tell.
    """
    of_image = np.bincount(images)
    of_caption = np.bincount(captions)
    are_of_images = _are_alike(of_image)
    are_of_captions = _are_alike(of_caption)
    if are_of_images == are_of_captions:
        return None
    return "i2t" if are_of_images else "t2i"


def _are_alike(candidates: Ids) -> bool:
    """Whether nearly all queries that have candidates have as many."""
    _, counts = np.unique(candidates[candidates > 0], return_counts=True)
    return bool(counts.max() >= ALIKE * counts.sum())


def _fill(matrix: Any, most: float) -> float | None:
    """The value of pairs that were not scored; None where there is none such. most: the largest
    share of pairs that were scored.
    """
    rows, columns = matrix.shape
    if not rows or not columns:
        return None
    looked_at = np.unique(np.linspace(0, rows - 1, LOOKED_AT, dtype=np.int64))
    least = min(float(np.asarray(matrix[row : row + 1]).min()) for row in looked_at.tolist())
    number, rest = divmod(least, FILL)
    if rest or not 1 <= number <= MOST_PROCESSES:
        return None
    filled = 0
    for start in range(0, rows, ROWS):
        filled += int((np.asarray(matrix[start : start + ROWS]) == least).sum())
    scored = rows * columns - filled
    if not 0 < scored <= min(most * rows * columns, MOST_PAIRS):
        return None
    return least


def _scored(matrix: Any, fill: float | None) -> tuple[Ids, Ids, np.ndarray]:
    """The rows, columns and scores of the pairs that were scored; None for all pairs."""
    rows = []
    columns = []
    scores = []
    for start in range(0, matrix.shape[0], ROWS):
        block = np.asarray(matrix[start : start + ROWS])
        is_scored = np.ones(block.shape, bool) if fill is None else block != fill
        row, column = np.nonzero(is_scored)
        rows.append(row + start)
        columns.append(column)
        scores.append(block[row, column].astype(np.float64))
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(scores)
