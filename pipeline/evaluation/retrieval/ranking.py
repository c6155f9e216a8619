"""Ranks by counting: how many candidates beat the best right one, in one pass over a matrix for both directions."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.evaluation.retrieval.counting import Counts
from pipeline.evaluation.retrieval.ranks import QueryRanks, Ranks
from pipeline.evaluation.retrieval.relevance import Relevance, as_relevance
from pipeline.evaluation.retrieval.similarity import Direction, PerDirection, Similarity, WholeQueries, as_similarity
from pipeline.evaluation.retrieval.thresholds import OwnThresholds, Thresholds
from pipeline.evaluation.retrieval.workers import share, threads
from pipeline.parts.errors import InputError

Progress: TypeAlias = Callable[[int], object]


def rank(similarity: object, truth: object, block_megabytes: float = 32, progress: Progress | None = None) -> Ranks:
    """Rank the best right caption of every image, and the best right image of every caption, by counting.

    Args:
        similarity: Anything that `as_similarity` takes, [I images, C captions].
        truth: A `Relevance`, or integers [C], the row of each caption's image, in any order and any number an image; -1
            for a caption whose image is not in the pool. A caption or image for which nothing is right is no query, but
            stays among the candidates of the others.
        block_megabytes: Size of all blocks in memory at once (10^6 bytes), one for each thread; memory beyond it is a
            few numbers for each image, caption and right pair.
        progress: Called after each block with the number of image rows finished so far.

    Returns:
        Both directions' ranks.

    Raises:
        InputError: For shapes that disagree, and for a NaN or infinity, with its row and column.
    """
    source = as_similarity(similarity)
    relevance = as_relevance(truth, source.shape)
    if not block_megabytes > 0:
        raise InputError(f"block_megabytes: expected a positive number, received {block_megabytes}")
    block_bytes = max(1, int(block_megabytes * 1e6 / threads()))
    if isinstance(source, PerDirection):
        report = _Rows(progress, source.shape, 2 * source.shape[0] * source.shape[1])
        i2t = _count(source.direction("i2t", block_bytes), relevance, block_bytes, report, ("i2t",))["i2t"]
        t2i = _count(source.direction("t2i", block_bytes), relevance, block_bytes, report, ("t2i",))["t2i"]
    else:
        cells = getattr(source, "cells", source.shape[0] * source.shape[1])
        counts = _count(source, relevance, block_bytes, _Rows(progress, source.shape, cells), ("i2t", "t2i"))
        i2t, t2i = counts["i2t"], counts["t2i"]
    return Ranks(i2t, t2i, relevance)


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
        name: Direction = "i2t" if by_image else "t2i"
        self.counts = {name: Counts(thresholds.best, by_row=True)}

    def add(self, rows: slice, columns: slice) -> None:
        block = self.source.block(rows, columns)
        scores, queries = (block, rows) if self.by_image else (block.T, columns)
        self.thresholds.settle(scores, queries)
        self.counts["i2t" if self.by_image else "t2i"].add(scores, queries.start, 0)


def _count(source: Similarity, relevance: Relevance, block_bytes: int, report: _Rows,
           directions: tuple[Direction, ...]) -> dict[Direction, QueryRanks]:
    counters: Sequence[_Counter | _QueryCounter]
    right: dict[Direction, Callable[[], Ids]]
    blocks = source.grid(source.shape, block_bytes)
    if isinstance(source, WholeQueries):
        own = OwnThresholds(source, relevance.i2t if source.by_image else relevance.t2i, source.by_image)
        counters = share(blocks, lambda: _QueryCounter(source, own, source.by_image), report.finished)
        right = dict.fromkeys(directions, own.right)
    else:
        given = Thresholds(source, relevance)
        counters = share(blocks, lambda: _Counter(source, given, directions), report.finished)
        right = {name: given.levels[name].right for name in directions}
    return {name: _queries(Counts.total([counter.counts[name] for counter in counters]), right[name]())
            for name in directions}


def _queries(counts: Counts, right: Ids) -> QueryRanks:
    query = np.flatnonzero(right)
    return QueryRanks(query, counts.above[query], counts.at[query] - right[query], right[query])
