"""Ranks by counting: how many wrong items beat the right one, both directions in one pass over the blocks of
a similarity matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from pipeline.errors import InputError
from pipeline.retrieval.blocks import Ids
from pipeline.retrieval.ranks import QueryRanks, Ranks
from pipeline.retrieval.similarity import Direction, PerDirection, Similarity, as_similarity
from pipeline.retrieval.thresholds import TILE, Thresholds

Progress: TypeAlias = Callable[[int], object]


def rank(
    similarity: object, caption_image: object, block_megabytes: float = 64, progress: Progress | None = None
) -> Ranks:
    """Ranks every image's captions and every caption's image by counting.

    similarity: anything that `as_similarity` takes, [I images, C captions].
    caption_image: integers [C], the row of each caption's image, in any order and any number per image; -1
        for a caption whose image is not in the pool. Such a caption, and an image without captions, is no
        query but stays among the candidates of the others.
    block_megabytes: size of the largest block read at once (10^6 bytes); memory beyond it is a few numbers
        per image and caption.
    progress: called after each block with the number of image rows finished so far.

    Raises `InputError` for shapes that disagree, and for a NaN or infinity, with its row and column.
    """
    source = as_similarity(similarity)
    owner = check_caption_image(caption_image, source.shape)
    if not block_megabytes > 0:
        raise InputError(f"block_megabytes: expected a positive number, received {block_megabytes}")
    block_bytes = max(1, int(block_megabytes * 1e6))
    if isinstance(source, PerDirection):
        report = _Rows(progress, source.shape, passes=2)
        i2t = _count(source.direction("i2t", block_bytes), owner, block_bytes, report, ("i2t",))["i2t"]
        t2i = _count(source.direction("t2i", block_bytes), owner, block_bytes, report, ("t2i",))["t2i"]
    else:
        counts = _count(source, owner, block_bytes, _Rows(progress, source.shape), ("i2t", "t2i"))
        i2t, t2i = counts["i2t"], counts["t2i"]
    return Ranks(i2t, t2i, source.shape, owner)


def check_caption_image(caption_image: object, shape: tuple[int, int]) -> Ids:
    """The map as int64 [C]; raises `InputError` unless each entry is a row of the matrix, or -1, and some
    entry is a row.
    """
    owner = np.asarray(caption_image)
    images, captions = shape
    if owner.shape != (captions,) or owner.dtype.kind not in "iu":
        raise InputError(
            f"caption_image: expected {captions} integers, one for each column of the matrix {list(shape)}, "
            f"received {owner.dtype} {list(owner.shape)}"
        )
    if owner.min() < -1 or owner.max() >= images:
        place = int(np.flatnonzero((owner < -1) | (owner >= images))[0])
        raise InputError(
            f"caption_image: caption {place} names row {owner[place]}, but the matrix has {images} rows"
        )
    if owner.max() < 0:
        raise InputError("caption_image: no caption has its image in the pool, so there is nothing to rank")
    return owner.astype(np.int64)


class _Rows:
    """Tells progress in whole image rows, whatever the order of the blocks."""

    def __init__(self, progress: Progress | None, shape: tuple[int, int], passes: int = 1) -> None:
        self.progress, self.cells_a_row, self.cells = progress, shape[1] * passes, 0

    def finished(self, cells: int) -> None:
        self.cells += cells
        if self.progress is not None:
            self.progress(self.cells // self.cells_a_row)


def _count(
    source: Similarity, owner: Ids, block_bytes: int, report: _Rows, directions: tuple[Direction, ...]
) -> dict[Direction, QueryRanks]:
    thresholds = Thresholds(source, owner)
    tallies = {
        name: _Tally(1, thresholds.image) if name == "i2t" else _Tally(0, thresholds.caption)
        for name in directions
    }
    for rows, columns in source.grid(source.shape, block_bytes):
        _count_block(source, thresholds, list(tallies.values()), rows, columns)
        report.finished((rows.stop - rows.start) * (columns.stop - columns.start))
    return {name: _queries(tally.counts.numpy(), thresholds, name) for name, tally in tallies.items()}


def _count_block(
    source: Similarity, thresholds: Thresholds, tallies: list[_Tally], rows: slice, columns: slice
) -> None:
    block = source.block(rows, columns)
    thresholds.settle(block, rows, columns)
    for top in range(0, block.shape[0], TILE[0]):
        for left in range(0, block.shape[1], TILE[1]):
            cells = block[top : top + TILE[0], left : left + TILE[1]]
            for tally in tallies:
                tally.add(cells, (rows.start + top, columns.start + left))


class _Tally:
    """How many cells are above (counts[0]) and how many at (counts[1]) the threshold of their row (dim 1) or
    column (dim 0).
    """

    def __init__(self, dim: int, threshold: Tensor) -> None:
        self.dim, self.threshold = dim, threshold.unsqueeze(dim)
        self.counts = torch.zeros(2, len(threshold), dtype=torch.int64)
        self.buffer = torch.empty(TILE)

    def add(self, cells: Tensor, corner: tuple[int, int]) -> None:
        """Counts the cells of a tile that starts at this row and column of the matrix."""
        axis = 1 - self.dim
        start, length = corner[axis], cells.shape[axis]
        threshold = self.threshold.narrow(axis, start, length)
        # Comparing into floats and summing those is faster than summing booleans.
        out = self.buffer[: cells.shape[0], : cells.shape[1]]
        self.counts[0, start : start + length] += torch.gt(cells, threshold, out=out).sum(self.dim).long()
        self.counts[1, start : start + length] += torch.eq(cells, threshold, out=out).sum(self.dim).long()


def _queries(
    tally: np.ndarray[Any, np.dtype[np.int64]], thresholds: Thresholds, direction: Direction
) -> QueryRanks:
    greater, level = tally
    known, owner = thresholds.known, thresholds.owner
    if direction == "t2i":
        right = np.ones(len(known), np.int64)
        return QueryRanks(known, greater[known], level[known] - right, right)
    reached = (thresholds.caption[known] == thresholds.image[owner[known]]).numpy()
    right = np.bincount(owner[known[reached]], minlength=len(greater))
    query = np.flatnonzero(right)
    return QueryRanks(query, greater[query], level[query] - right[query], right[query])
