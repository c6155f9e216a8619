"""Ranks by counting: how many wrong items beat the right one, both directions in one pass over the blocks of
a similarity matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from pipeline.errors import InputError
from pipeline.retrieval.blocks import Ids
from pipeline.retrieval.counting import Counts
from pipeline.retrieval.ranks import QueryRanks, Ranks
from pipeline.retrieval.similarity import Direction, PerDirection, Similarity, WholeQueries, as_similarity
from pipeline.retrieval.thresholds import OwnThresholds, Thresholds
from pipeline.retrieval.workers import share, threads

Progress: TypeAlias = Callable[[int], object]


def rank(
    similarity: object, caption_image: object, block_megabytes: float = 32, progress: Progress | None = None
) -> Ranks:
    """Ranks every image's captions and every caption's image by counting.

    similarity: anything that `as_similarity` takes, [I images, C captions].
    caption_image: integers [C], the row of each caption's image, in any order and any number per image; -1
        for a caption whose image is not in the pool. Such a caption, and an image without captions, is no
        query but stays among the candidates of the others.
    block_megabytes: size of all blocks in memory at once (10^6 bytes), one for each thread; memory
        beyond it is a few numbers per image and caption.
    progress: called after each block with the number of image rows finished so far.

    Raises `InputError` for shapes that disagree, and for a NaN or infinity, with its row and column.
    """
    source = as_similarity(similarity)
    owner = check_caption_image(caption_image, source.shape)
    if not block_megabytes > 0:
        raise InputError(f"block_megabytes: expected a positive number, received {block_megabytes}")
    block_bytes = max(1, int(block_megabytes * 1e6 / threads()))
    if isinstance(source, PerDirection):
        report = _Rows(progress, source.shape, 2 * source.shape[0] * source.shape[1])
        i2t = _count(source.direction("i2t", block_bytes), owner, block_bytes, report, ("i2t",))["i2t"]
        t2i = _count(source.direction("t2i", block_bytes), owner, block_bytes, report, ("t2i",))["t2i"]
    else:
        cells = getattr(source, "cells", source.shape[0] * source.shape[1])
        counts = _count(source, owner, block_bytes, _Rows(progress, source.shape, cells), ("i2t", "t2i"))
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
        raise InputError(f"caption_image: caption {place} names row {owner[place]}, but the matrix has {images} rows")
    if owner.max() < 0:
        raise InputError("caption_image: no caption has its image in the pool, so there is nothing to rank")
    return owner.astype(np.int64)


class _Rows:
    """Tells progress in whole image rows, whatever the order of the blocks; `cells` are all that are visited."""

    def __init__(self, progress: Progress | None, shape: tuple[int, int], cells: int) -> None:
        self.progress, self.rows, self.all_cells, self.cells = progress, shape[0], cells, 0

    def finished(self, cells: int) -> None:
        self.cells += cells
        if self.progress is not None:
            self.progress(self.cells * self.rows // self.all_cells)


class _Counter:
    """One thread's counts of the blocks that it computes."""

    def __init__(self, source: Similarity, thresholds: Thresholds, directions: tuple[Direction, ...]) -> None:
        self.source, self.thresholds = source, thresholds
        both: dict[Direction, Callable[[], Counts]] = {
            "i2t": lambda: Counts(thresholds.image, by_row=True),
            "t2i": lambda: Counts(thresholds.caption, by_row=False),
        }
        self.counts = {name: both[name]() for name in directions}

    def add(self, rows: slice, columns: slice) -> None:
        block = self.source.block(rows, columns)
        self.thresholds.settle(block, rows, columns)
        for counts in self.counts.values():
            counts.add(block, rows.start, columns.start)


class _QueryCounter:
    """One thread's counts of the blocks that it computes, each of whole queries."""

    def __init__(self, source: Similarity, thresholds: OwnThresholds, by_image: bool) -> None:
        self.source, self.thresholds, self.by_image = source, thresholds, by_image
        threshold = thresholds.image if by_image else thresholds.caption
        name: Direction = "i2t" if by_image else "t2i"
        self.counts = {name: Counts(threshold, by_row=True)}

    def add(self, rows: slice, columns: slice) -> None:
        block = self.source.block(rows, columns)
        if self.by_image:
            self.thresholds.settle_images(block, rows)
            self.counts["i2t"].add(block, rows.start, 0)
        else:
            self.thresholds.settle_captions(block.T, columns)
            self.counts["t2i"].add(block.T, columns.start, 0)


def _count(
    source: Similarity, owner: Ids, block_bytes: int, report: _Rows, directions: tuple[Direction, ...]
) -> dict[Direction, QueryRanks]:
    thresholds: Thresholds | OwnThresholds
    counters: Sequence[_Counter | _QueryCounter]
    blocks = source.grid(source.shape, block_bytes)
    if isinstance(source, WholeQueries):
        thresholds = own = OwnThresholds(source, owner)
        counters = share(blocks, lambda: _QueryCounter(source, own, source.by_image), report.finished)
    else:
        thresholds = given = Thresholds(source, owner)
        counters = share(blocks, lambda: _Counter(source, given, directions), report.finished)
    return {
        name: _queries(Counts.total([counter.counts[name] for counter in counters]), thresholds, name)
        for name in directions
    }


def _queries(counts: Counts, thresholds: Thresholds | OwnThresholds, direction: Direction) -> QueryRanks:
    greater, level = counts.above, counts.at
    known, owner = thresholds.known, thresholds.owner
    if direction == "t2i":
        right = np.ones(len(known), np.int64)
        return QueryRanks(known, greater[known], level[known] - right, right)
    reached = thresholds.caption[known] == thresholds.image[owner[known]]
    right = np.bincount(owner[known[reached]], minlength=len(greater))
    query = np.flatnonzero(right)
    return QueryRanks(query, greater[query], level[query] - right[query], right[query])
