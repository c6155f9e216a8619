"""Scores that cannot be ranked against each other: all equal, never written, filled in, or scaled
for each row or each column by itself.

What is equal is known of the ranks; of a matrix some rows and some columns are read again.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.foundation.evaluation.retrieval.blocks import Floats, Ids
from pipeline.foundation.evaluation.retrieval.ranks import QueryRanks, Ranks
from pipeline.foundation.evaluation.retrieval.similarity import (
    PerDirection,
    Scores,
    Selection,
    Similarity,
    WholeQueries,
    of_direction,
    vectors_of,
)
from pipeline.foundation.parts.errors import counted

# Rows, and columns, that are read, of at most so many cells.
LINES = 64
CELLS = 4_000_000
# A filler is the value of this share of a row's scores, and other values, of which there are so
# many or more, have a tenth of it at most.
FILLED = 0.1
OTHERS = 20
# What a line of scaled scores has in common with all others, and what differs in the other
# direction, in standard deviations of the scores.
EVEN = 1e-3
UNEVEN = 1e-2
EXACT = 1e-6


class Constant(NamedTuple):
    """How many images and captions, of those with a right answer, are as similar to all."""

    images: int
    captions: int
    all_images: bool  # Whether these are all images
    all_captions: bool  # Whether these are all captions

    @classmethod
    def of(cls, rankings: Sequence[Ranks]) -> "Constant":
        """Count the queries of each pool whose right answer is tied with all candidates."""
        images = sum(_tied_with_all(ranks.i2t, ranks.shape[1]) for ranks in rankings)
        captions = sum(_tied_with_all(ranks.t2i, ranks.shape[0]) for ranks in rankings)
        asking_images = sum(len(ranks.i2t) for ranks in rankings)
        asking_captions = sum(len(ranks.t2i) for ranks in rankings)
        return cls(images, captions, images == asking_images, captions == asking_captions)


def of_all(source: Scores, constant: Constant) -> str:
    """Say that no candidate differs from another in one direction or both; "" if some do."""
    if constant.all_images and constant.all_captions:
        first = slice(0, 1)
        (value,) = of_direction(source, "i2t").block(first, first).flat
        return (
            f"all scores are {value:g}: they tell no two images and no two captions apart, and every "
            "rank is that of chance"
        )
    if constant.all_images:
        return "each row holds one value: all captions have the same scores"
    if constant.all_captions:
        return "each column holds one value: all images have the same scores"
    return ""


def of_some(source: Scores, constant: Constant, given: bool) -> Iterator[str]:
    """Say that scores are scaled by row or by column, filled in, or constant in some rows or
    columns. given: whether nothing here computed them.
    """
    if not isinstance(source, PerDirection | WholeQueries) and vectors_of(source) is None:
        if given:
            yield from _scaled(source)
        yield from _filled(source, constant)
    lines = []
    if constant.images:
        lines.append(counted(constant.images, "row"))
    if constant.captions:
        lines.append(counted(constant.captions, "column"))
    if lines:
        hold = "holds"
        if constant.images + constant.captions > 1:
            hold = "hold"
        yield (
            f"{' and '.join(lines)} {hold} one value each: were these images and captions ever "
            "scored? They are tied with all others"
        )


def _tied_with_all(queries: QueryRanks, candidates: int) -> int:
    tied = queries.equal + queries.right
    return int(np.count_nonzero((tied == candidates) & (queries.equal > 0)))


def _filled(source: Similarity, constant: Constant) -> Iterator[str]:
    """Say that one value is that of many scores, where the others hardly repeat."""
    rows = 0
    fillers = []
    shares = []
    others = []
    for row in _rows(source):
        values, counts = np.unique(row, return_counts=True)
        if len(values) == 1:
            continue
        rows += 1
        *_, second, most = np.sort(counts).tolist()
        everywhere = constant.captions  # columns of one value are said apart
        is_frequent = most - everywhere >= FILLED * counts.sum()
        if is_frequent and second <= max(2, most / 10):
            filler = counts.argmax()
            fillers.append(values[filler])
            shares.append(most / counts.sum())
            others.append(np.delete(values, filler))
    if not fillers or sum(shares) < FILLED * rows:
        return
    if len(np.unique(np.concatenate(others))) < OTHERS:
        return
    value = "one value a row"
    if np.ptp(fillers) == 0:
        value = f"{fillers[0]:g}"
    percent = min(99, round(100 * sum(shares) / rows))
    yield (
        f"{percent} % of the scores are {value}: if it fills in for "
        "pairs that were not scored, these are tied, and only the direction whose best candidates "
        "were all scored is a result"
    )


class _Side(NamedTuple):
    """How scores of one side's items are compared, and how messages call it."""

    line: str
    item: str  # what a line is of
    over: str  # what a softmax within it is over
    direction: str  # which the scaling of lines changes


ROW = _Side("row", "image", "captions", "caption → image")
COLUMN = _Side("column", "caption", "images", "image → caption")


def _scaled(source: Similarity) -> Iterator[str]:
    """Say that all rows, or all columns, have a number in common that the others have not."""
    while isinstance(source, Selection):  # it is the whole row that a softmax makes one
        source = source.source
    rows = _with_several_values(_rows(source))
    columns = _with_several_values(_columns(source))
    if min(len(rows), len(columns)) < 2:
        return
    spread = float(rows.std())
    for side, lines, others in ((ROW, rows, columns), (COLUMN, columns, rows)):
        words = _in_common(lines, others, spread, side.over)
        if words:
            yield (
                f"each {side.line} {words}: {side.direction} compares scores that are scaled for each "
                f"{side.item} by itself; give the scores before that step"
            )
            return


def _with_several_values(lines: Floats) -> Floats:
    return lines[np.ptp(lines, axis=1) > 0]


def _in_common(lines: Floats, others: Floats, spread: float, over: str) -> str:
    """What lines of scores [n, N] have in common and those of the other side have not, in words."""

    def common(of_own: Floats, of_other: Floats) -> bool:
        return bool(np.ptp(of_own) <= EVEN * spread and np.ptp(of_other) > UNEVEN * spread)

    if _has_the_same_numbers(lines, spread) and not _has_the_same_numbers(others, spread):
        return "holds the same numbers in another order, as places in a ranking are"
    if common(lines.mean(1), others.mean(1)):
        total = float(lines.sum(1).mean())
        if lines.min() >= 0 and abs(total - 1) < EVEN:
            return f"sums to 1, as after a softmax over {over}"
        if lines.min() >= 0 or lines.max() <= 0:
            return f"sums to {total:.3g}"
        if common(lines.std(1), others.std(1)):
            mean = round(float(lines.mean()), 6) + 0.0
            return f"has the mean {mean:g} and the standard deviation {lines.std(1).mean():.3g}"
    if lines.max() <= 0 and common(_log_sum(lines), _log_sum(others)):
        return f"is the logarithm of a softmax over {over}"
    highest = lines.max(1)
    has_one = _has_one_highest(lines, spread)
    other_has = _has_one_highest(others, spread) and _has_one_highest(-others, spread)
    if has_one and _has_one_highest(-lines, spread) and not other_has:
        return f"runs from {lines.min():.3g} to {lines.max():.3g}"
    if has_one and common(highest, others.max(1)):
        return f"has the largest score {highest[0]:.3g}"
    return ""


def _has_the_same_numbers(lines: Floats, spread: float) -> bool:
    differences = np.ptp(np.sort(lines, axis=1), axis=0)
    return bool((differences <= EXACT * spread).all())


def _has_one_highest(lines: Floats, spread: float) -> bool:
    """Whether one score of each line is the highest, the same for all lines."""
    highest = lines.max(1)
    alone = (lines == highest[:, None]).sum(1) == 1
    return bool(alone.all() and np.ptp(highest) <= EXACT * spread)


def _log_sum(lines: Floats) -> Floats:
    highest = lines.max(1)
    sums = np.exp(lines - highest[:, None]).sum(1)
    log_sums: Floats = highest + np.log(sums)
    return log_sums


def _rows(source: Similarity) -> Floats:
    """Some whole rows, evenly from all: [n, C]."""
    images, captions = source.shape
    rows = _some(images, captions)
    return np.asarray(source.block(rows, slice(0, captions)), np.float64)


def _columns(source: Similarity) -> Floats:
    """Some whole columns, side by side, which a file of rows gives faster: [n, I]."""
    images, captions = source.shape
    count = len(_some(captions, images))
    start = (captions - count) // 2
    block = source.block(slice(0, images), slice(start, start + count))
    return np.asarray(block, np.float64).T


def _some(lines: int, cells: int) -> Ids:
    count = min(lines, max(2, min(LINES, CELLS // cells)))
    return np.unique(np.linspace(0, lines - 1, count).astype(np.int64))
