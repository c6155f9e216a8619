"""Lists of the best as arrays [queries, k]: candidates' ids or row numbers, and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline.foundation import evaluation
from pipeline.foundation.evaluation.retrieval import Collection, Direction, Ids, Lists, Side
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores import runs
from pipeline.judge.systems.scores.foreign.identified import SIDES, Given, numbers, pool_of_lists
from pipeline.judge.systems.scores.judged import CAPTIONS, Columns
from pipeline.judge.systems.scores.runs import Run

if TYPE_CHECKING:
    from pipeline.foundation.evaluation.judgements.names import Names

PADDING = -1  # what FAISS writes where it found fewer
ASKED: dict[Direction, tuple[Side, Side]] = {
    "i2t": ("image", "caption"),
    "t2i": ("caption", "image"),
}


# Direction -> what lists of it hold.
NAMES = {"i2t": "images' best captions", "t2i": "captions' best images"}


class Listed(NamedTuple):
    """The lists of one direction as a file has them."""

    direction: Direction | None  # None where it must be found
    candidates: np.ndarray  # [Q, k], ids or rows
    scores: np.ndarray | None  # [Q, k]; None for the best first
    by_rows: bool = False  # whether candidates are called rows, such as indices


class Sides(NamedTuple):
    """What is known of queries and candidates."""

    given: Given  # the ids of images and captions
    queries: np.ndarray | None = None  # [Q], the ids of what asks, whatever it is
    candidates: np.ndarray | None = None  # the ids of what answers
    pool: tuple[Collection, Names] | None = None  # the images and captions, where all are known

    def ids(self, side: Side, asks: bool, path: Path) -> Ids | None:
        """The ids of a side in the order of its rows; None if they are not known."""
        ids = self.given.of(side)
        if ids is None and asks:
            ids = self.queries
        elif ids is None:
            ids = self.candidates
        if ids is not None:
            return numbers(ids, self.names, path, f"{side} ids")
        if self.pool is None:
            return None
        return self.pool[0].ids(side)

    @property
    def names(self) -> Names:
        """Finds ids by how they are written."""
        if self.pool is None:
            return evaluation.judgements.names.Names()
        return self.pool[1]


def of_arrays(
    path: Path, listed: Sequence[Listed], sides: Sides, columns: Columns
) -> tuple[Lists, Collection, bool, str]:
    """The lists, their pool, whether its ids are known, and how they were read, in words."""
    found: dict[Direction, Run] = {}
    said = []
    for each in listed:
        if each.scores is None and columns.distance:
            raise InputError(
                f"{path}: lists candidates without scores, the best first; leave out --distance"
            )
        candidates = _as_numbers(each.candidates, sides.names, path)
        way = each.direction or _direction(path, candidates, sides, columns)
        found[way], read = _run(path, each, candidates, way, sides)
        said.append(f"{NAMES[way]} {read}".rstrip())
    if sides.pool is None:
        pool, has_ids = pool_of_lists(found, columns, path)
    else:
        pool = sides.pool[0]
        has_ids = True
    return runs.lists(found, pool, str(path)), pool, has_ids, " and ".join(said)


def _as_numbers(candidates: np.ndarray, names: Names, path: Path) -> Ids:
    """Candidates as whole numbers, `PADDING` for none."""
    ids = numbers(candidates.ravel(), names, path, "candidates").reshape(candidates.shape)
    if candidates.dtype.kind not in "UST":
        return ids
    is_blank = (ids == evaluation.judgements.names.UNKNOWN) & (candidates == "")
    return np.where(is_blank, PADDING, ids)


def _direction(path: Path, candidates: Ids, sides: Sides, columns: Columns) -> Direction:
    """Which side asks, by how many queries there are."""
    queries = len(candidates)
    images, captions = map(sides.given.of, SIDES)
    if sides.pool is not None:
        sizes = [*sides.pool[0].shape]
    elif images is not None and captions is not None:
        sizes = [len(images), len(captions)]
    else:
        each = columns.captions_per_image or CAPTIONS
        most = int(candidates.max(initial=0)) + 1
        are_captions = not queries % each and most <= queries // each
        sizes = [queries, queries * each]
        if are_captions:
            sizes = [queries // each, queries]
    if sizes[0] == sizes[1] or queries not in sizes:
        raise InputError(
            f"{path}: lists {queries} queries, and the pool has {sizes[0]} images and {sizes[1]} "
            "captions; name the arrays i2t_ids and i2t_scores, or t2i_ids and t2i_scores"
        )
    return "i2t" if queries == sizes[0] else "t2i"


def _run(
    path: Path, listed: Listed, candidates: Ids, way: Direction, sides: Sides
) -> tuple[Run, str]:
    """The rows of the lists of a direction, and how candidates were read."""
    asking, answering = ASKED[way]
    queries = sides.ids(asking, True, path)
    count, k = candidates.shape
    if queries is not None and len(queries) != count:
        raise InputError(f"{path}: lists {count} queries, and there are {len(queries)}")
    held, read = _ids_of(candidates, sides.ids(answering, False, path), listed.by_rows, path)
    if queries is None:
        queries = np.arange(count)
    asked = np.repeat(queries, k)
    if listed.scores is None:
        values = np.tile(-np.arange(k, dtype=np.float64), count)
    else:
        values = listed.scores.astype(np.float64).ravel()
    is_listed = candidates.ravel() != PADDING
    return Run(asked[is_listed], held.ravel()[is_listed], values[is_listed]), read


def _ids_of(candidates: Ids, ids: Ids | None, by_rows: bool, path: Path) -> tuple[Ids, str]:
    """The ids of candidates [Q, k] that may be rows; and which of both they are, in words."""
    if ids is None:
        return candidates, ""
    is_listed = candidates != PADDING
    are_ids = np.isin(candidates[is_listed], ids).all()
    largest = int(candidates.max(initial=0))
    are_rows = candidates.min(initial=0) >= PADDING and largest < len(ids)
    differ = not np.array_equal(ids, np.arange(len(ids)))
    if not (are_ids or are_rows):
        raise InputError(
            f"{path}: lists candidate {largest}, which is neither an id nor a row of {len(ids)} "
            "candidates"
        )
    may_be_both = are_ids and are_rows and differ
    if are_ids and not (are_rows and by_rows):
        return candidates, "by ids" if may_be_both else ""
    of_rows = np.where(is_listed, ids[candidates], PADDING)
    return of_rows, "by rows" if may_be_both else ""
