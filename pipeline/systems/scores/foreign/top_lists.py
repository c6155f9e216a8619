"""Lists of the best as arrays [queries, k]: candidates' ids or row numbers, and their scores."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipeline.evaluation.judgements.names import Names
from pipeline.evaluation.retrieval import Collection, Direction, Ids, Lists, Side
from pipeline.parts.errors import InputError
from pipeline.systems.scores import runs
from pipeline.systems.scores.foreign.identified import (
    SIDES,
    Given,
    known_pool,
    numbers,
    pool_of_lists,
)
from pipeline.systems.scores.judged import CAPTIONS, Columns
from pipeline.systems.scores.runs import Run

PADDING = -1  # what FAISS writes where it found fewer
ASKED: dict[Direction, tuple[Side, Side]] = {
    "i2t": ("image", "caption"),
    "t2i": ("caption", "image"),
}


def of_arrays(
    path: Path,
    listed: Sequence[tuple[Direction | None, np.ndarray, np.ndarray | None]],
    given: Given,
    columns: Columns,
) -> tuple[Lists, Collection, bool, str]:
    """The lists, their pool, whether its ids are known, and how they were read, in words.

    listed: of each direction, None where it must be found: candidates [Q, k], and scores [Q, k] or
        None for the best first. given: the ids of images and captions, by which queries or
        candidates may be numbered.
    """
    known = known_pool(columns)
    pool = None if known is None else known[0]
    found: dict[Direction, Run] = {}
    for named, candidates, scores in listed:
        way = named or _direction(path, candidates, pool, given, columns)
        found[way] = _run(
            path, candidates, scores, *(_ids(side, given, pool, path) for side in ASKED[way])
        )
    has_ids = True
    if pool is None:
        pool, has_ids = pool_of_lists(found, columns, path)
    ways = " and ".join(
        "images' best captions" if way == "i2t" else "captions' best images" for way in found
    )
    return runs.lists(found, pool, str(path)), pool, has_ids, ways


def _direction(
    path: Path, candidates: np.ndarray, pool: Collection | None, given: Given, columns: Columns
) -> Direction:
    """Which side asks, by how many queries there are."""
    queries, most = len(candidates), int(candidates.max(initial=0)) + 1
    sizes = [None if ids is None else len(ids) for ids in (given.images, given.captions)]
    if pool is not None:
        sizes = [*pool.shape]
    elif None in sizes:
        each = columns.captions_per_image or CAPTIONS
        sizes = (
            [queries // each, queries]
            if not queries % each and most <= queries // each
            else [queries, queries * each]
        )
    if sizes[0] == sizes[1] or queries not in sizes:
        raise InputError(
            f"{path}: lists {queries} queries, and the pool has {sizes[0]} images and {sizes[1]} "
            "captions; name the arrays i2t_ids and i2t_scores, or t2i_ids and t2i_scores"
        )
    return "i2t" if queries == sizes[0] else "t2i"


def _ids(side: Side, given: Given, pool: Collection | None, path: Path) -> Ids | None:
    """The ids of a side in the order of its rows; None if they are not known."""
    ids = (given.images, given.captions)[SIDES.index(side)]
    if ids is not None:
        return numbers(ids, Names(pool), path)
    return None if pool is None else pool.ids(side)


def _run(
    path: Path,
    candidates: np.ndarray,
    scores: np.ndarray | None,
    queries: Ids | None,
    candidate_ids: Ids | None,
) -> Run:
    count, k = candidates.shape
    if queries is not None and len(queries) != count:
        raise InputError(f"{path}: lists {count} queries, and there are {len(queries)}")
    held = candidates.astype(np.int64)
    if (
        candidate_ids is not None and not np.isin(held[held != PADDING], candidate_ids).all()
    ):  # then they are rows
        if held.max(initial=0) >= len(candidate_ids):
            raise InputError(
                f"{path}: lists candidate {held.max()}, which is neither an id nor a row of "
                f"{len(candidate_ids)} candidates"
            )
        held = np.where(held == PADDING, PADDING, candidate_ids[held])
    asked = np.repeat(np.arange(count) if queries is None else queries, k)
    values = (
        np.tile(-np.arange(k, dtype=np.float64), count)
        if scores is None
        else scores.astype(np.float64).ravel()
    )
    is_listed = candidates.ravel() != PADDING
    return Run(asked[is_listed], held.ravel()[is_listed], values[is_listed])
