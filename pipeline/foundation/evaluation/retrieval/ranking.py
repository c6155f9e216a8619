"""Ranks by counting: how many candidates beat the best right one, in one pass over a matrix for
both directions.
"""

import math

import numpy as np

from pipeline.foundation.evaluation.retrieval.blocks import (
    TILE_CELLS,
    TILE_WIDTH,
    Cells,
    Direction,
    Ids,
    Marks,
)
from pipeline.foundation.evaluation.retrieval.placements import Placing
from pipeline.foundation.evaluation.retrieval.ranks import KnownRanks, QueryRanks, Ranks
from pipeline.foundation.evaluation.retrieval.relevance import Positives, Relevance, as_relevance
from pipeline.foundation.evaluation.retrieval.similarity import (
    EqualRows,
    PerDirection,
    Scores,
    Similarity,
    WholeQueries,
    as_similarity,
)
from pipeline.foundation.evaluation.retrieval.workers import (
    Counter,
    Progress,
    count,
    in_items,
    threads,
)
from pipeline.foundation.parts.errors import InputError

# Eight flags are added at once, as the bytes of an int64; so many words can be added before a byte
# overflows.
ADDED = 255


def rank(
    similarity: object, truth: object, block_megabytes: float = 32, progress: Progress | None = None
) -> Ranks:
    """Rank the best right caption of every image, and the best right image of every caption, by
    counting.

    Args:
        similarity: Anything that `as_similarity` takes, [I images, C captions].
        truth: A `Relevance`, or integers [C], the row of each caption's image, in any order and any
            number an image; -1 for a caption whose image is not in the pool. A caption or image for
            which nothing is right is no query, but stays among the candidates of the others.
        block_megabytes: Size of all blocks in memory at once (10^6 bytes), one for each thread;
            memory beyond it is a few numbers for each image, caption and right pair.
        progress: Called after each block with the number of image rows finished so far.

    Returns:
        Both directions' ranks.

    Raises:
        InputError: For shapes that disagree, and for a NaN or infinity, with its row and column.
    """
    source = as_similarity(similarity)
    return rank_all(source, as_relevance(truth, source.shape), block_megabytes, progress)


def rank_all(
    source: Scores, relevance: Relevance, block_megabytes: float, progress: Progress | None
) -> Ranks:
    """Rank both directions of scores, see `rank`."""
    if not block_megabytes > 0:
        raise InputError(f"block_megabytes: expected a positive number, received {block_megabytes}")
    if isinstance(source, KnownRanks):
        return source.ranks(relevance)
    if isinstance(source, Placing):
        of_images = source.place(relevance.i2t, "i2t")
        of_captions = source.place(relevance.t2i, "t2i")
        return Ranks(of_images.best(), of_captions.best(), relevance)
    block_bytes = max(1, int(block_megabytes * 1e6 / threads()))
    images, captions = source.shape
    cells = images * captions
    if isinstance(source, PerDirection):
        finished = in_items(progress, images, 2 * cells)
        counts = _count_direction(source, "i2t", relevance, block_bytes, finished)
        counts |= _count_direction(source, "t2i", relevance, block_bytes, finished)
    else:
        finished = in_items(progress, images, getattr(source, "cells_computed", cells))
        counts = _count(source, relevance, block_bytes, finished, "i2t", "t2i")
    return Ranks(counts["i2t"], counts["t2i"], relevance)


def _count_direction(
    source: PerDirection,
    name: Direction,
    relevance: Relevance,
    block_bytes: int,
    finished: Progress,
) -> dict[Direction, QueryRanks]:
    matrix = source.direction(name, block_bytes)
    return _count(matrix, relevance, block_bytes, finished, name)


def _count(
    source: Similarity,
    relevance: Relevance,
    block_bytes: int,
    finished: Progress,
    *directions: Direction,
) -> dict[Direction, QueryRanks]:
    blocks = source.grid(source.shape, block_bytes)
    if isinstance(source, WholeQueries):
        positives = relevance.t2i
        if source.by_image:
            positives = relevance.i2t
        queries = _OwnQueries(source, positives, source.by_image)
        above, at, right = count(blocks, queries, finished)
        return {directions[0]: _ranks(above, at, right)}
    thresholds = _Thresholds(source, relevance)
    counts = count(blocks, _AllQueries(source, thresholds, directions), finished)
    ranks = {}
    for number, name in enumerate(directions):
        above, at = counts[2 * number : 2 * number + 2]
        ranks[name] = _ranks(above, at, thresholds.of[name].right())
    return ranks


def _ranks(above: Ids, at: Ids, right: Ids) -> QueryRanks:
    query = np.flatnonzero(right)
    return QueryRanks(query, above[query], at[query] - right[query], right[query])


class _AllQueries(Counter):
    """Counts, for each query of one or both directions, the cells above its threshold and those
    equal to it.
    """

    def __init__(
        self, source: Similarity, thresholds: "_Thresholds", directions: tuple[Direction, ...]
    ) -> None:
        self.source = source
        self.thresholds = thresholds
        self.directions = directions
        lengths = []
        for name in directions:
            queries = len(thresholds.of[name].best)
            lengths += [queries, queries]
        self.lengths = tuple(lengths)

    def add(self, rows: slice, columns: slice) -> None:
        block = self.source.block(rows, columns)
        self.thresholds.settle(block, rows, columns)
        for number, name in enumerate(self.directions):
            by_row = name == "i2t"
            part = rows if by_row else columns
            above = self.counts[2 * number][part]
            at = self.counts[2 * number + 1][part]
            _compare(block, self.thresholds.of[name].best[part], by_row, above, at)


def _compare(block: np.ndarray, threshold: np.ndarray, by_row: bool, above: Ids, at: Ids) -> None:
    """Add how many cells of each row or column are above its threshold, and how many are equal to
    it: [n] each.
    """
    width = min(block.shape[1], TILE_WIDTH)
    height = min(TILE_CELLS // width, ADDED)
    for top in range(0, block.shape[0], height):
        for left in range(0, block.shape[1], width):
            cells = block[top : top + height, left : left + width]
            tall, wide = cells.shape
            if by_row:
                part = slice(top, top + tall)
                border = threshold[part, None]
            else:
                part = slice(left, left + wide)
                border = threshold[part]
            words = math.ceil(wide / (8 * ADDED)) * ADDED
            flags = np.zeros((tall, 8 * words), bool)
            for counts, compare in ((above, np.greater), (at, np.equal)):
                compare(cells, border, out=flags[:, :wide])
                counts[part] += _sums(flags, by_row)[: part.stop - part.start]


def _sums(flags: Marks, by_row: bool) -> np.ndarray:
    words = flags.view(np.int64)
    if not by_row:
        return np.add.reduce(words, axis=0).view(np.uint8)
    lanes = np.add.reduce(words.reshape(len(words), -1, ADDED), axis=2).view(np.uint8)
    return lanes.sum(axis=1, dtype=np.int64)


class _Threshold:
    """One direction's thresholds: the similarity of each query's best right candidate.

    positives: of Q queries, P pairs. cells: [P], their similarities. best: [Q], the largest of each
        query; infinity if nothing is right for it, which no candidate reaches.
    """

    def __init__(self, positives: Positives, cells: Cells, by_image: bool) -> None:
        self.positives = positives
        self.cells = cells
        self.by_image = by_image
        self.best = positives.best(cells)

    def right(self) -> Ids:
        """Count the right candidates of each query that have its best similarity: int64 [Q]."""
        return np.bincount(self._reached()[0], minlength=len(self.best))

    def _reached(self) -> tuple[Ids, Ids]:
        """The pairs that have their query's best similarity: queries and candidates."""
        query = self.positives.query
        here = np.flatnonzero(self.cells == self.best[query])
        return query[here], self.positives.candidate[here]

    def label(self, labels: Ids) -> None:
        """Keep the labels of candidates, and that of each query's best right one: int64 [Q], -1 if
        there is none.
        """
        self.labels = labels
        self.best_label = np.full(len(self.best), -1, np.int64)
        query, candidate = self._reached()
        self.best_label[query] = labels[candidate]

    def write_pairs(self, block: Cells, rows: slice, columns: slice) -> None:
        """Overwrite the cells of right pairs."""
        if self.by_image:
            scores = block
            queries = rows
            candidates = columns
        else:
            scores = block.T
            queries = columns
            candidates = rows
        pairs, part = self.positives.part(queries)
        inside = (pairs.candidate >= candidates.start) & (pairs.candidate < candidates.stop)
        here = np.flatnonzero(inside)
        place = pairs.candidate[here] - candidates.start
        scores[pairs.query[here], place] = self.cells[part][here]

    def write_equals(self, block: Cells, rows: slice, columns: slice) -> None:
        """Overwrite the cells of candidates that are equal to a query's best right one."""
        if self.by_image:
            best = self.best[rows, None]
            same = self.best_label[rows, None] == self.labels[None, columns]
        else:
            best = self.best[None, columns]
            same = self.labels[rows, None] == self.best_label[None, columns]
        np.copyto(block, best, where=same)


class _Thresholds:
    """The best right similarity of each image [I] and of each caption [C], read before any
    block.
    """

    def __init__(self, source: Similarity, relevance: Relevance) -> None:
        by_caption = relevance.t2i
        by_image = relevance.i2t
        cells = source.pairs(by_caption.candidate, by_caption.query)
        of_caption = _Threshold(by_caption, cells, False)
        order = relevance.order
        if order is not None:
            of_images = cells[order]
        else:
            of_images = source.pairs(by_image.query, by_image.candidate)
        of_image = _Threshold(by_image, of_images, True)
        self.of: dict[Direction, _Threshold] = {"i2t": of_image, "t2i": of_caption}
        self.pairs: list[_Threshold] = []
        self.equals: list[_Threshold] = []
        equal = source.equal
        if equal is None:
            return
        self.pairs = [of_caption]
        if order is None:
            self.pairs.append(of_image)
        if _any_equal(equal):
            self.equals = [of_caption, of_image]
            of_caption.label(equal.images)
            of_image.label(equal.captions)

    def settle(self, block: Cells, rows: slice, columns: slice) -> None:
        """Overwrite cells of a computed block that must equal a threshold.

        Rounding may differ from one matrix product to another. Without this, an image could rank
        above itself or above its own duplicate.
        """
        for threshold in self.pairs:
            threshold.write_pairs(block, rows, columns)
        for threshold in self.equals:
            threshold.write_equals(block, rows, columns)


def _any_equal(equal: EqualRows) -> bool:
    """Whether two images or two captions have equal embeddings."""
    return any(len(np.unique(labels)) < len(labels) for labels in equal)


class _OwnQueries(Counter):
    """Counts of one direction, whose thresholds are read from the block that holds the whole query.

    Cells are computed once, and none is computed beforehand. Of each query it counts the cells
    above its threshold, those equal to it, and those of them that are right.
    """

    def __init__(self, source: Similarity, positives: Positives, by_image: bool) -> None:
        self.source = source
        self.positives = positives
        self.by_image = by_image
        self.lengths = (len(positives),) * 3
        self.labels = None
        equal = source.equal
        if equal is not None and _any_equal(equal):
            self.labels = equal.captions if by_image else equal.images

    def add(self, rows: slice, columns: slice) -> None:
        block = self.source.block(rows, columns)
        scores = block
        queries = rows
        if not self.by_image:
            scores = block.T
            queries = columns
        pairs, _ = self.positives.part(queries)
        query = pairs.query
        candidate = pairs.candidate
        cells = scores[query, candidate]
        best = pairs.best(cells)
        if self.labels is not None:  # candidates equal to a query's best take its value
            reached = np.flatnonzero(cells == best[query])
            label = np.full(len(scores), -1, np.int64)
            label[query[reached]] = self.labels[candidate[reached]]
            np.copyto(scores, best[:, None], where=label[:, None] == self.labels)
            cells = scores[query, candidate]
        above, at, right = (counts[queries] for counts in self.counts)
        _compare(scores, best, True, above, at)
        right += np.bincount(query[cells == best[query]], minlength=len(best))
