"""Likely mistakes in scores from elsewhere: distances, another order of rows or columns, vectors of
other lengths, and scores that cannot be compared (`degenerate.py`).

What costs little is looked at always: the ranks that were found, the lengths of some vectors, some
rows and columns. Only where the right answers rank as by chance are more rows read again. Notes
change no number. Thresholds are far from what an untrained head, a weak system or hubs give; the
tests simulate these.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.retrieval import degenerate
from pipeline.foundation.evaluation.retrieval.blocks import Cells, Floats, Ids, Marks, Matrix
from pipeline.foundation.evaluation.retrieval.lists import Lists, Order
from pipeline.foundation.evaluation.retrieval.owners import of_owners
from pipeline.foundation.evaluation.retrieval.placements import Placing
from pipeline.foundation.evaluation.retrieval.ranks import QueryRanks, Ranks
from pipeline.foundation.evaluation.retrieval.relevance import Positives, Relevance
from pipeline.foundation.evaluation.retrieval.similarity import (
    Scores,
    Similarity,
    of_direction,
    vectors_of,
)
from pipeline.foundation.parts.errors import counted

# Fewer queries or candidates than this say nothing.
FEWEST = 20
# Rows that are read again, and vectors whose lengths are compared.
ROWS = 64
VECTORS = 1000
# Where in a matrix rows that follow one another are read.
RUNS = 4
# The mean place of right answers from which it is that of chance (0.5), their median where they are
# at the end, and the mean below which another arrangement has them clearly in front.
CHANCE = 0.35
END = 0.8
FRONT = 0.2
# Standard deviations from chance that lists in random order never have.
SURE = 5
# How near rows that follow one another are, by the distance of most (a quantile), if they are of
# one image: rounding and batches of a GPU move them by 1 %, and other images are farther apart.
NEAR = 0.05
HIGH = 0.99
# The same for rows of scores, and how much farther apart rows of two images are at least.
ROUNDED = 0.01
GAP = 5
# The relative spread of lengths that rounding to 16 bits does not explain.
SPREAD = 0.02
# The mean correlation of two systems' scores of wrong pairs below which they see other items, and
# above which the same.
UNRELATED = 0.05
RELATED = 0.1
# How many processes may have dealt the items in turn, each writing its share one after another.
PROCESSES = (2, 4, 8)


def of_vectors(images: Any, captions: Any) -> list[str]:
    """Notice images that are there once for each caption, and vectors that are not of one length,
    whose inner products are no cosines: at most one note.
    """
    if len(images) == len(captions):
        repeated = of_rows(images)
        if repeated:
            return [repeated]
    uneven = {}
    for side, vectors in (("image", images), ("caption", captions)):
        lengths = _lengths(vectors)
        if np.ptp(lengths) > SPREAD * np.median(lengths):
            uneven[side] = f"{side} vectors {lengths.min():.3g} to {lengths.max():.3g}"
    if not uneven:
        return []
    ranges = " and ".join(uneven.values())
    either = ""
    if images.shape[1] in (len(images), len(captions)) and len(uneven) == 2:
        either = "; if the files hold similarities, give one of them alone"
    return [
        f"the lengths of {ranges} differ: their inner products are no cosines; --normalise divides each vector by "
        f"its length{either}"
    ]


def of_rows(images: Any) -> str:
    """Notice vectors [N, D] of images that follow one another in groups that are equal, or equal
    but for rounding: how many there are, "" where there are none.
    """
    count = len(images)
    if count < FEWEST:
        return ""
    steps = _distances(images)
    is_near = steps <= NEAR * np.quantile(steps, HIGH)
    ends = np.flatnonzero(~is_near) + 1
    sizes = np.diff([0, *ends, count])
    groups = len(sizes)
    if groups < 2 or 2 * groups > count:
        return ""
    many = _many(sizes, steps[is_near])
    one = "and caption_image, the row of each caption's image"
    if np.ptp(sizes) == 0:
        one = f"images[::{sizes[0]}]"
    return (
        f"the {count:,} rows of image vectors come in {groups:,} groups of {many}: is "
        f"each image there once for each of its captions? save one row of each, {one}"
    )


def _distances(vectors: Any) -> Floats:
    """The distance of each vector to the next one, float64 [N - 1]."""
    steps = []
    for start in range(0, len(vectors) - 1, VECTORS):
        block = np.asarray(vectors[start : start + VECTORS + 1], np.float64)
        steps.append(np.linalg.norm(np.diff(block, axis=0), axis=1))
    return np.concatenate(steps)


def _many(sizes: Ids, steps: Floats) -> str:
    """Say how many rows are in groups of these sizes, and whether they are equal or but for these
    steps.
    """
    low = int(sizes.min())
    high = int(sizes.max())
    many = f"{low}"
    if low < high:
        many = f"{low} to {high}"
    if steps.any():
        return f"{many} that are almost equal"
    return f"{many} that are equal"


def _of_repeated_rows(source: Scores) -> Iterator[str]:
    """Say that rows of a square matrix that follow one another are equal in groups, or equal but
    for rounding.
    """
    images, captions = source.shape
    if images != captions or vectors_of(source) is not None:
        return
    by_row = of_direction(source, "i2t")
    length = min(images, max(FEWEST, degenerate.CELLS // (RUNS * captions)))
    begins = np.unique(np.linspace(0, images - length, RUNS).astype(np.int64)).tolist()
    steps = np.stack([_steps(by_row, begin, length) for begin in begins])
    is_near = steps <= ROUNDED * np.quantile(steps, HIGH)
    ends = [np.flatnonzero(~near) for near in is_near]
    # Of groups that are there whole.
    sizes = np.concatenate([np.diff(ends_of_run) for ends_of_run in ends])
    if 2 * is_near.sum() < is_near.size or len(sizes) < 2 or sizes.max() < 2:
        return
    if GAP * steps[is_near].max() > steps[~is_near].min():  # rows of any distance from one another
        return
    many = _many(sizes, steps[is_near])
    yield (
        f"the {images:,} rows of a square matrix come in groups of {many}: is each "
        "image there once for each of its captions? save one row of each, and give --captions-per-image "
        "or caption_image"
    )


def _steps(source: Similarity, begin: int, length: int) -> Floats:
    """How far consecutive rows are from one another; infinitely far for rows of one value."""
    rows = source.block(slice(begin, begin + length), slice(0, source.shape[1]))
    rows = np.asarray(rows, np.float64)
    is_constant = np.ptp(rows, axis=1) == 0
    steps: Floats = np.linalg.norm(np.diff(rows, axis=0), axis=1)
    steps[is_constant[1:] | is_constant[:-1]] = np.finfo(np.float64).max
    return steps


def of_scores(
    source: Scores,
    relevance: Relevance,
    rankings: Sequence[Ranks],
    ids: tuple[Ids, Ids] | None = None,
    ordered: bool = False,
    given: bool = True,
) -> list[str]:
    """Notice scores that cannot be compared, and distances, vectors given as a matrix, rows or
    columns in another order: at most one note of each kind.

    ordered: whether the order of rows and columns is known. given: whether scores are what somebody
        else computed, not corrected here.
    """
    if isinstance(source, Lists):
        ordered_wrongly = [*_of_lists(source.order)] or [*_of_right_in_lists(source, relevance)]
        return [*ordered_wrongly, *_of_unlisted(source, relevance)]
    if isinstance(source, Placing):  # reranked lists come with ids
        return []
    of_images = []
    of_captions = []
    for ranks in rankings:
        images, captions = ranks.shape
        if min(images, captions) < FEWEST:
            return []
        of_images.append(_places(ranks.i2t, ranks.relevance.i2t, captions))
        of_captions.append(_places(ranks.t2i, ranks.relevance.t2i, images))
    both = [np.concatenate(of_images), np.concatenate(of_captions)]
    if min(map(len, both)) < FEWEST:
        return []
    constant = degenerate.Constant.of(rankings)
    nothing_differs = degenerate.of_all(source, constant)
    if nothing_differs:
        return [nothing_differs]
    if given:
        repeated = [*_of_repeated_rows(source)]
        if repeated:
            return repeated
    notes = [*degenerate.of_some(source, constant, given)][:1]
    if min(np.median(places) for places in both) > END:
        return [*notes, _at_the_end(source, rankings)]
    by_chance = min(places.mean() for places in both) >= CHANCE
    if by_chance and not ordered and not (relevance.owner < 0).any():
        notes += [*_of_order(source, relevance, ids)][:1]
    return notes


def _at_the_end(source: Scores, rankings: Sequence[Ranks]) -> str:
    size = rankings[0].shape[0]
    rank = np.mean([np.median(ranks.t2i.ranks()) for ranks in rankings])
    what = "is the sign of the scores reversed?"
    if isinstance(source, Matrix):
        what = "are these distances? --distance ranks the smallest first"
    return f"the right answers rank at the end (median rank {rank:,.0f} of {size:,} images): {what}"


def _of_lists(order: Order) -> Iterator[str]:
    """Say that the scores of lists contradict the order in which candidates are listed."""
    if order.rises and order.is_reversed:
        yield (
            "with --distance the candidates that are listed last are best: are these similarities? leave "
            "out --distance"
        )
    elif order.rises and order.of_ranks:
        yield (
            "its ranks and its scores contradict each other, the scores rise with the ranks: are they "
            "distances, or ranks? --distance ranks the smallest first"
        )
    elif order.rises:
        yield (
            "the scores of each list rise from its first candidate to its last: are they distances, or "
            "ranks? --distance ranks the smallest first"
        )
    elif order.are_places and not (order.falls or order.is_reversed):
        yield (
            "the scores of each list are the numbers from 1 on, in another order: are they ranks? "
            "--distance ranks the smallest first"
        )
    elif order.of_ranks and not order.falls:
        yield (
            "its ranks and its scores contradict each other: candidates are ranked by the scores, and "
            "the ranks are not read"
        )


def _of_right_in_lists(source: Lists, relevance: Relevance) -> Iterator[str]:
    """Say that right candidates stand behind the wrong ones of their lists, which lists in no
    particular order do not show by themselves.
    """
    of_both = [
        source.right_before_wrong(relevance.i2t, "i2t"),
        source.right_before_wrong(relevance.t2i, "t2i"),
    ]
    if all(before.share > 1 - END or before.deviation > -SURE for before in of_both):
        return
    what = "are these distances, or ranks? --distance ranks the smallest first"
    if source.order.is_reversed:
        what = "with --distance: are these similarities? leave out --distance"
    yield f"the right answers stand last in their lists by their scores: {what}"


def _of_unlisted(source: Lists, relevance: Relevance) -> Iterator[str]:
    """Say how many queries have no list, of each direction that has lists."""
    for count, positives, noun in (
        (source.unlisted(relevance.i2t, "i2t"), relevance.i2t, "image"),
        (source.unlisted(relevance.t2i, "t2i"), relevance.t2i, "caption"),
    ):
        queries = int(np.count_nonzero(positives.count))
        if len(source.listed) == 1:
            noun = "query"  # of a run of anything, too
        verbs = "is not listed and counts" if count == 1 else "are not listed and count"
        if count:
            yield f"{count:,} of {counted(queries, noun)} {verbs} 0"


def of_two(one: Scores, other: Scores, owner: Ids) -> list[str]:
    """Notice two good systems without ids whose rows seem to be in different orders: at most one
    note.
    """
    images, captions = one.shape
    if isinstance(one, Placing) or isinstance(other, Placing):
        return []
    if images < FEWEST or (owner < 0).any():
        return []
    rows = np.sort(np.random.default_rng(0).choice(images, min(images, ROWS), replace=False))
    every_caption = slice(0, captions)
    mine = of_direction(one, "i2t").block(rows, every_caption)
    whole = of_direction(other, "i2t")
    wrong = owner != rows[:, None]

    def agreement(image: Ids) -> float:
        """How far both agree if the first one's image i is the other's image[i]: a correlation."""
        order = np.argsort(of_owners(image, owner), kind="stable")  # captions follow their images
        column = np.empty(captions, np.int64)
        column[order] = np.argsort(owner, kind="stable")
        ascending = np.argsort(image[rows])
        its = np.empty_like(mine)
        its[ascending] = whole.block(image[rows][ascending], every_caption)
        return _correlation(mine, its[:, column], wrong)

    same = np.arange(images)
    if _front(mine, rows, owner) > FRONT:
        return []
    if _front(whole.block(rows, every_caption), rows, owner) > FRONT or agreement(same) > UNRELATED:
        return []
    by_text = np.argsort(same.astype(str), kind="stable")
    for words, image in (
        ("its images are in reverse order", images - 1 - same),
        ("its rows are sorted by ids as text (10 before 2)", np.argsort(by_text)),
        ("the first one's rows are sorted by ids as text (10 before 2)", by_text),
    ):
        if agreement(image) > RELATED:
            return [
                f"does not agree with the first system, but does if {words}: both must be in one order; save ids "
                "with the scores, or name the --manifest"
            ]
    return [
        "its scores of wrong pairs have nothing in common with the first system's: are images and captions in one "
        "order in both? ids saved with the scores (image_ids, caption_ids) would align them"
    ]


def _correlation(one: Cells, other: Cells, counted: Marks) -> float:
    """The mean correlation of some rows of two matrices, over the cells that count."""
    correlations = []
    for mine, its, chosen in zip(one, other, counted, strict=True):
        mine = mine[chosen]
        its = its[chosen]
        if np.ptp(mine) > 0 and np.ptp(its) > 0:
            correlations.append(np.corrcoef(mine, its)[0, 1])
    if not correlations:
        return 1.0
    return float(np.mean(correlations))


def _lengths(vectors: Any) -> Floats:
    """The lengths of some vectors, evenly from all."""
    count = min(len(vectors), VECTORS)
    rows = np.unique(np.linspace(0, len(vectors) - 1, count).astype(np.int64))
    lengths: Floats = np.linalg.norm(np.asarray(vectors[rows], np.float64), axis=1)
    return lengths


def _places(ranks: QueryRanks, positives: Positives, candidates: int) -> Floats:
    """The place of each query's best right candidate, 0 to 1: evenly distributed if candidates are
    in random order.
    """
    behind = 1 - (ranks.ranks() - 0.5) / candidates
    quantiles: Floats = 1 - np.power(behind.clip(0), positives.count[ranks.query], dtype=np.float64)
    return quantiles


def _of_order(source: Scores, relevance: Relevance, ids: tuple[Ids, Ids] | None) -> Iterator[str]:
    """Say that right answers are at chance, first the reason if one is found."""
    images, captions = source.shape
    rows = np.sort(np.random.default_rng(0).choice(images, min(images, ROWS), replace=False))
    scores = of_direction(source, "i2t").block(rows, slice(0, captions))
    lengths = np.linalg.norm(scores.astype(np.float64), axis=1)
    if np.ptp(lengths) < SPREAD and abs(lengths.mean() - 1) < SPREAD:
        yield (
            "all rows have length 1: is this a file of vectors? give it with that of the other side: "
            "images.npy:captions.npy"
        )
    for words, arranged in _arrangements(relevance.owner, images, ids):
        if _front(scores, rows, arranged) < FRONT:
            yield (
                f"the right answers rank as by chance, and far better if {words}: rows and columns are in another "
                "order than assumed; save them in the order of --manifest, or each image's captions one after "
                "another"
            )
    if retrieval.siblings.found(source):
        yield (
            "the right answers rank as by chance, yet the scores pair each image with a few captions that are "
            "alike: rows or columns are in another order than assumed; compare it with that of --manifest"
        )
    yield (
        "the right answers rank as by chance: is the model trained, and are rows and columns in the order of "
        "--manifest, or each image's captions one after another?"
    )


def _front(scores: Cells, rows: Ids, owner: Ids) -> float:
    """The mean place of some rows' best right captions, if captions belong to these images: 0 is
    the first.
    """
    order = np.argsort(owner, kind="stable")
    ascending = owner[order]
    first = np.searchsorted(ascending, rows, "left")
    last = np.searchsorted(ascending, rows, "right")
    quantiles = []
    for values, start, stop in zip(scores, first, last, strict=True):
        if start < stop:
            best = values[order[start:stop]].max()
            before = np.count_nonzero(values > best) + np.count_nonzero(values == best) / 2
            quantiles.append(1 - (1 - before / len(values)) ** (stop - start))
    if len(quantiles) < FEWEST:
        return 1.0
    return float(np.mean(quantiles))


def _arrangements(
    owner: Ids, images: int, ids: tuple[Ids, Ids] | None
) -> Iterator[tuple[str, Ids]]:
    """Other orders that tools write, each with the image of each column in it.

    owner: int64 [C], the image of each column in the order that was assumed.
    """
    captions = len(owner)
    column = np.arange(captions)
    captions_of_image = captions // images
    yield f"caption j is of image j % {images:,}", column % images
    if captions == images * captions_of_image:
        yield f"caption j is of image j // {captions_of_image}", column // captions_of_image
    yield "the images are in reverse order", images - 1 - owner
    for step, words in ((1, "later"), (-1, "earlier")):
        shifted = np.where(owner < 0, owner, (owner + step) % images)
        yield f"each image is one row {words}", shifted
    image_ids = np.arange(images)
    caption_ids = column
    if ids:
        image_ids, caption_ids = ids
        by_number = np.argsort(image_ids, kind="stable")
        yield (
            "images and captions are sorted by their ids, which the file has",
            of_owners(by_number, owner[_place_in_order(caption_ids)]),
        )
    yield (
        "rows are sorted by the images' ids as text (10 before 2)",
        of_owners(_place_in_order(image_ids.astype(str)), owner),
    )
    yield (
        "columns are sorted by the captions' ids as text (10 before 2)",
        owner[np.argsort(caption_ids.astype(str), kind="stable")],
    )
    for count in PROCESSES:
        rows_dealt = np.argsort(np.argsort(np.arange(images) % count, kind="stable"))
        columns_dealt = np.argsort(column % count, kind="stable")
        dealt = f"were dealt to {count} processes in turn, each with its share one after another"
        yield f"the images {dealt}", of_owners(rows_dealt, owner)
        yield f"the captions {dealt}", owner[columns_dealt]
        yield f"both sides {dealt}", of_owners(rows_dealt, owner[columns_dealt])


def _place_in_order(ids: np.ndarray) -> Ids:
    """The place of each id in their order."""
    return np.argsort(np.argsort(ids, kind="stable"), kind="stable")
