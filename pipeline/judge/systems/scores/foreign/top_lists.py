"""Lists of the best: a run, or arrays [queries, k] of candidates' ids or row numbers and their
scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline.foundation import evaluation
from pipeline.foundation.evaluation.retrieval import Collection, Direction, Ids, Lists, Side
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.judge.systems.scores import runs
from pipeline.judge.systems.scores.foreign.beside import Rows, beside, column
from pipeline.judge.systems.scores.foreign.held import Found, Held
from pipeline.judge.systems.scores.foreign.identified import (
    SIDES,
    Given,
    Scores,
    identified,
    in_words,
    known_pool,
    numbered,
    numbers,
)
from pipeline.judge.systems.scores.foreign.scores import Taken, refuse_distances
from pipeline.judge.systems.scores.foreign.words import CANDIDATES, FAISS, IDS, QUERIES, ROWS, Name
from pipeline.judge.systems.scores.judged import CAPTIONS, Columns
from pipeline.judge.systems.scores.runs import Run, RunFile

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
    name: str = ""  # of the array, for messages


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


def of_arrays(held: Held, ways: Sequence[tuple[Direction | None, Found, Found | None]]) -> Taken:
    """Each query's best candidates, whose ids may be those of images and captions."""
    listed = []
    arrays: list[Found] = []
    descriptions = []
    for way, ids, scores in ways:
        name = Name.of(ids.name)
        of_rows = name.has(ROWS | FAISS) and not name.has(IDS)
        values = None if scores is None else scores.array.read()
        listed.append(Listed(way, ids.array.read(), values, of_rows, ids.name))
        arrays.append(ids)
        if scores is None:
            descriptions.append(f"{ids}, best first")
        else:
            arrays.append(scores)
            descriptions.append(f"{ids} with {scores}")
    for array in arrays:
        refuse_distances(held, array)
    sides, of_sides, said = _sides(held, listed)
    source, pool, has_ids, read = _read(held.path, listed, sides, held.columns)
    read_as = f"{' and '.join(descriptions)}: {read}"
    return Taken(Scores(source, pool, has_ids, in_words(read_as, said)), [*of_sides, *arrays])


def of_run(path: Path, columns: Columns, parts: Sequence[str] = ()) -> Scores:
    """The lists of a run, within the pool of the manifest, of the judgements, or of numbers
    from 0.

    parts: what the user types behind the file, to choose in it.
    """
    layout = runs.layout_of(path)
    judgements = None
    if layout is not None and layout.has_judgements and columns.judgements is None:
        judgements = path
        columns = replace(columns, judgements=path)
    known = known_pool(columns)
    if known is not None:
        pool, names = known
        file = runs.read(path, names, columns.distance, parts)
        lists = runs.lists(file.run, pool, str(path), file.of_pair)
        lists.parts = parts
        return _with_others(Scores(lists, pool, True, file.title), file, path, columns)
    of_anything = layout is not None or not runs.names_sides(path, parts)
    names = evaluation.judgements.names.Names(sided=layout is None)
    file = runs.read(path, names, columns.distance, parts)
    pool, has_ids = _pool(file.run, columns, path, names)
    lists = runs.lists(file.run, pool, str(path), file.of_pair)
    lists.example = file.example
    lists.unanswered = np.flatnonzero(np.isin(pool.caption_ids, file.unanswered))
    lists.has_all_queries = layout is not None and layout.has_all_queries
    lists.are_whole = layout is not None and layout.has_all_candidates
    lists.parts = parts
    scores = Scores(
        lists, pool, has_ids, file.title, of_anything=of_anything, judgements=judgements
    )
    return _with_others(scores, file, path, columns)


def _with_others(scores: Scores, file: RunFile, path: Path, columns: Columns) -> Scores:
    """The scores of a run, and what else its file holds."""
    otherwise: dict[str, Callable[[], Scores]] = {}
    siblings = []
    for other in file.others:
        name = ":".join(other.parts)
        otherwise[name] = partial(of_run, path, columns, other.parts)
        if other.is_sibling:
            siblings.append(name)
    return scores._replace(otherwise=otherwise, siblings=tuple(siblings))


def _sides(held: Held, listed: Sequence[Listed]) -> tuple[Sides, list[Found], str]:
    """What is known of queries and candidates, the arrays that say it, and what was assumed."""
    asks = _ids_named(held, QUERIES)
    answers = _ids_named(held, CANDIDATES)
    both = [array for array in (asks, answers) if array is not None]
    alone = [None if array is None else column(array) for array in (asks, answers)]
    known = known_pool(held.columns)
    shape = _shape(held, listed) if known is None else known[0].shape
    if shape is None:
        return Sides(Given(), alone[0], alone[1]), both, ""
    held_beside = beside(held, Rows(shape))
    used = [*held_beside.ids, *both]
    if known is not None:
        return Sides(held_beside.given, alone[0], alone[1], known), used, ""
    found = identified(shape, held_beside.given, held.columns, held.path)
    sides = Sides(
        held_beside.given, alone[0], alone[1], (found.pool, evaluation.judgements.names.Names())
    )
    return sides, [*used, *held_beside.used(found)], found.said


def _ids_named(held: Held, words: frozenset[str]) -> Found | None:
    """The first array of ids whose name has one of some words."""
    for array in held.of("ids"):
        if Name.of(array.name).has(words):
            return array
    return None


def _shape(held: Held, listed: Sequence[Listed]) -> tuple[int, int] | None:
    """How many images and captions lists are of, where the file has ids of a side or says each
    caption's image; None where it does not tell.
    """
    size: dict[Side, int] = {}
    for each in held.every:
        if each.role.kind in ("ids", "owners") and each.role.side is not None:
            side: Side = each.role.side
            if each.role.kind == "owners":
                side = "caption"
            size.setdefault(side, each.size)
    if not size:
        return None
    for lists in listed:
        if lists.direction is not None:
            size.setdefault(ASKED[lists.direction][0], len(lists.candidates))
    queries = len(listed[0].candidates)
    few = held.columns.captions_per_image
    for side, other in (SIDES, SIDES[::-1]):
        if side in size and other not in size and size[side] != queries:
            size[other] = queries
    if few is not None and "image" in size:
        size.setdefault("caption", size["image"] * few)
    if few is not None and "caption" in size:
        size.setdefault("image", size["caption"] // few)
    if "image" not in size and listed[0].candidates.dtype.kind in "iu":
        rows = [listed[0].candidates, *(each.array.read() for each in held.of("owners"))]
        size["image"] = 1 + max(
            int(each.max(initial=0)) for each in rows if each.dtype.kind in "iu"
        )
    if len(size) < len(SIDES):
        return None
    return size["image"], size["caption"]


def _read(
    path: Path, listed: Sequence[Listed], sides: Sides, columns: Columns
) -> tuple[Lists, Collection, bool, str]:
    """The lists, their pool, whether its ids are known, and how they were read, in words."""
    found: dict[Direction, Run] = {}
    name_of: dict[Direction, str] = {}
    said = []
    for each in listed:
        if each.scores is None and columns.distance:
            raise InputError(
                f"{path}: lists candidates without scores, the best first; leave out --distance"
            )
        candidates = _as_numbers(each.candidates, sides.names, path)
        way = each.direction or _direction(path, candidates, sides, columns)
        if way in found:
            held = ", ".join(other.name for other in listed)
            raise InputError(
                f"{path}: holds {counted(len(listed), 'list')}, {held}, of which {name_of[way]} and {each.name} are "
                f"both {NAMES[way]}; name one, {path}:{each.name}, or one of each direction"
            )
        name_of[way] = each.name
        found[way], read = _run(path, each, candidates, way, sides)
        said.append(f"{NAMES[way]} {read}".rstrip())
    if sides.pool is None:
        pool, has_ids = _pool(found, columns, path, evaluation.judgements.names.Names())
    else:
        pool = sides.pool[0]
        has_ids = True
    return runs.lists(found, pool, str(path)), pool, has_ids, " and ".join(said)


def _pool(
    run: Mapping[Direction, Run], columns: Columns, path: Path, names: Names
) -> tuple[Collection, bool]:
    """The pool of lists without a manifest, and whether its ids are known: of the judgements, or of
    numbers from 0.
    """
    none = Run(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    i2t = run.get("i2t", none)
    t2i = run.get("t2i", none)
    images = np.union1d(i2t.query, t2i.candidate)
    captions = np.union1d(i2t.candidate, t2i.query)
    if columns.judgements is not None:
        judged_images, judged_captions = evaluation.judgements.qrels.ids(columns.judgements, names)
        images = np.union1d(images, judged_images)
        captions = np.union1d(captions, judged_captions)
        return Collection(images, captions, np.full(len(captions), -1, np.int64)), True
    if columns.captions_per_image is None:
        raise InputError(
            f"{path}: lists the best candidates by their ids; name the --manifest or --qrels that says "
            "what is right, or with ids from 0 the --captions-per-image"
        )
    each = columns.captions_per_image
    # All images or all captions are queries, so their number is known; candidates may lack some.
    sizes = set()
    if len(i2t.query):
        sizes.add(float(int(i2t.query.max()) + 1))
    if len(t2i.query):
        sizes.add((int(t2i.query.max()) + 1) / each)
    size = int(max(sizes, default=0))
    shape = (size, size * each)
    if (
        sizes != {size}
        or not _are_numbers(images, shape[0])
        or not _are_numbers(captions, shape[1])
    ):
        raise InputError(
            f"{path}: its ids are no numbers from 0 with {each} captions an image; name the --manifest or "
            "--qrels"
        )
    caption_image, _, _ = columns.of(shape)
    return numbered(shape, caption_image), False


def _are_numbers(ids: Ids, count: int) -> bool:
    """Whether sorted ids are numbers from 0 below a count."""
    return not len(ids) or bool(ids[0] >= 0 and ids[-1] < count)


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
