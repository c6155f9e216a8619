"""open_clip's validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pipeline.foundation.evaluation.retrieval import Direction, Ids
from pipeline.foundation.evaluation.retrieval.relevance import as_relevance
from pipeline.foundation.evaluation.retrieval.similarity import (
    BLOCK_BYTES,
    as_similarity,
    of_direction,
)
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.conventions import Numbers, OfMatrices, refuse_lists

if TYPE_CHECKING:
    from pipeline.judge.systems.scores.system import System

DIRECTIONS: dict[str, Direction] = {"image_to_text": "i2t", "text_to_image": "t2i"}
# Of the ranks from 0.
RANKS: dict[str, Callable[[Ids], float]] = {
    "mean_rank": lambda ranks: float(ranks.mean()) + 1,
    "median_rank": lambda ranks: float(np.floor(np.median(ranks))) + 1,
}
CUTOFFS = (1, 5, 10)


class OpenClip(OfMatrices):
    """open_clip: one caption an image, and of equal scores the candidate of the smaller row first.

    Recalls are shares. The median rank is rounded down.

    Source:
        src/open_clip_train/metrics.py of open_clip 4; 3.3 sorts by torch, which leaves ties in any
        order.
    """

    ties = "of equal scores the first row or column first"

    def measure(self, system: System, names: Sequence[str] = ()) -> Numbers:
        refuse_lists(system)
        images, captions = system.shape
        right = as_relevance(system.truth, system.shape).t2i
        rows = np.arange(captions)
        if images != captions or not np.array_equal(right.query, rows):
            raise InputError(
                f"{system.name}: open_clip measures one caption an image, and this has {images:,} images and "
                f"{captions:,} captions; --captions-per-image 1 is for such a matrix"
            )
        if not np.array_equal(right.candidate, rows):
            raise InputError(
                f"{system.name}: open_clip measures a matrix whose row i is right for column i"
            )
        if not names:
            names = []
            for direction in DIRECTIONS:
                names += [f"{direction}_{each}" for each in RANKS]
                names += [f"{direction}_R@{k}" for k in CUTOFFS]
        ranks: dict[Direction, Ids] = {}
        values = {}
        for name in names:
            way, of_ranks = _metric(name)
            if way not in ranks:
                ranks[way] = _ranks(system, way)
            values[name] = of_ranks(ranks[way])
        return Numbers(values, {"image": images, "caption": captions}, [])


def _metric(name: str) -> tuple[Direction, Callable[[Ids], float]]:
    """The direction of a metric, and its number of the ranks from 0."""
    for direction, way in DIRECTIONS.items():
        kind = name.removeprefix(f"{direction}_")
        digits = kind.removeprefix("R@")
        if kind == name:
            continue
        if kind in RANKS:
            return way, RANKS[kind]
        if kind != digits and digits.isascii() and digits.isdigit():
            return way, partial(_share, int(digits))
    known = ", ".join(f"{each}_R@K, {each}_mean_rank, {each}_median_rank" for each in DIRECTIONS)
    raise InputError(f"--metric {name[:40]}: the tool has {known}")


def _share(k: int, ranks: Ids) -> float:
    """The share of ranks, from 0, below a cutoff."""
    return float(np.mean(ranks < k))


def _ranks(system: System, way: Direction) -> Ids:
    """The rank of each query's right candidate, from 0: what is larger, or equal and before it."""
    source = of_direction(as_similarity(system.scores), way)
    count = source.shape[0]
    every = np.arange(count)
    right = source.pairs(every, every)
    ranks = np.zeros(count, np.int64)
    for rows, columns in source.grid(source.shape, BLOCK_BYTES):
        cells = source.block(rows, columns)
        row = every[rows][:, None]
        column = every[columns][None, :]
        if way == "i2t":
            first = right[rows][:, None]
            is_before = (cells > first) | ((cells == first) & (column < row))
            ranks[rows] += np.count_nonzero(is_before & (column != row), axis=1)
        else:
            first = right[columns][None, :]
            is_before = (cells > first) | ((cells == first) & (row < column))
            ranks[columns] += np.count_nonzero(is_before & (column != row), axis=0)
    return ranks
