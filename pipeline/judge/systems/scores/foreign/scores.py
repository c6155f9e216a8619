"""The scores that the arrays of one or two files make: a matrix, inner products of vectors, or
lists of the best.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.retrieval import Direction, mistakes
from pipeline.foundation.evaluation.retrieval.similarity import Directions, as_similarity
from pipeline.foundation.parts import lazy
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.foreign import hits_file, unscored
from pipeline.judge.systems.scores.foreign.arrays import Arrays
from pipeline.judge.systems.scores.foreign.beside import (
    Rows,
    beside,
    tells_repeats,
)
from pipeline.judge.systems.scores.foreign.held import Found, Held, Kind, Part
from pipeline.judge.systems.scores.foreign.identified import (
    SIDES,
    Scores,
    identified,
    in_words,
    known_pool,
)
from pipeline.judge.systems.scores.foreign.words import DISTANCES, Name
from pipeline.judge.systems.scores.judged import Columns

# What takes arrays of the best as lists; it imports this file.
LISTS = "pipeline.judge.systems.scores.foreign.top_lists:of_arrays"
# Vectors by name that are taken for the rows of one array.
FEWEST = 3


class Taken(NamedTuple):
    """Scores, and the arrays that they and their ids were read from."""

    scores: Scores
    used: Sequence[Found]


def of_files(
    files: Sequence[tuple[Path, Arrays, list[str]]], columns: Columns, normalise: bool
) -> Scores:
    """Find the scores in the arrays of one or two files, of which the user names some."""
    path, arrays, names = files[0]
    if len(files) == 1 and hits_file.MARK in arrays.arrays:
        return hits_file.of_arrays(path, arrays, names, columns)
    parts = [Part(*file) for file in files]
    held = Held.of_parts(parts, columns)
    scores, used = _taken(held, [*_named(held)], normalise)
    title = " and ".join(dict.fromkeys(part.arrays.title for part in parts))
    described = in_words(scores.read_as, held.unused(used))
    return scores._replace(read_as=f"{title}: {described}")


def _taken(held: Held, named: Sequence[Found], normalise: bool) -> Taken:
    """Take the arrays that are named, or those that can only be the scores."""
    if len(named) > 2:
        raise InputError(
            f"{held.path}: {len(named)} arrays are named, expected one of scores, or two: vectors of "
            "images and captions, or candidates and their scores"
        )
    if len(named) == 2:
        return _of_two(held, named[0], named[1], normalise)
    if named and named[0].role.kind == "listed":
        (lists,) = named
        return _lists(held, [(held.direction(lists), lists, _scores_of(lists, held))])
    if named:
        return _matrix(held, {None: named[0]})
    listed = held.of("listed")
    if listed:
        _refuse_ids_of_columns(held, listed)
        with_scores = [(each.role.direction, each, _scores_of(each, held)) for each in listed]
        return _lists(held, with_scores)
    matrices = held.of("scores")
    ways = {each.role.direction: each for each in matrices}
    are_all = len(ways) == 1 or ways.keys() == {"i2t", "t2i"}
    if are_all and len(ways) == len(matrices):
        return _matrix(held, ways)
    vectors = held.of("vectors")
    of_side = {each.role.side: each for each in vectors}
    if not matrices and len(vectors) == 2 and of_side.keys() == {*SIDES}:
        return _vectors(held, of_side["image"], of_side["caption"], normalise)
    tables = _tables(held.every)
    if len(tables) == 1 and tables[0].role.kind != "vectors":
        return _matrix(held, {None: tables[0]})
    raise _unclear(held.path, matrices or tables, held.every)


def _refuse_ids_of_columns(held: Held, listed: Sequence[Found]) -> None:
    """Refuse ids in several columns beside scores or vectors, which are no lists of the best."""
    tables = [*held.of("scores"), *held.of("vectors")]
    for each in listed:
        is_beside = any(each.size == table.size for table in tables)
        if Name.of(each.name).is_of_ids and is_beside and _scores_of(each, held) is None:
            raise InputError(
                f"{held.path}: {each} has no one value for each row; save ids as one column, or call "
                "lists of the best i2t_ids or t2i_ids"
            )


def _of_two(held: Held, first: Found, second: Found, normalise: bool) -> Taken:
    """Two arrays that are named: a matrix for each direction, candidates and their scores, or
    vectors.
    """
    both = (first, second)
    ways = {held.direction(each): each for each in both}
    are_named = all(each.role.direction for each in both)
    if ways.keys() == {"i2t", "t2i"} and (are_named or _are_turned(first, second)):
        if all(each.role.kind == "listed" for each in both):
            return _lists(held, [(way, each, None) for way, each in ways.items()])
        return _matrix(held, ways)
    if first.array.shape == second.array.shape:
        for ids, other in (both, both[::-1]):
            if ids.array.is_whole:
                return _lists(held, [(held.direction(ids), ids, other)])
    if _are_transposed(first, second):
        pool = known_pool(held.columns)
        of_images = min(each.array.shape for each in both)
        if pool is not None:
            of_images = pool[0].shape
        i2t, t2i = both
        if first.array.shape != of_images:
            i2t, t2i = t2i, i2t
        return _matrix(held, {"i2t": i2t, "t2i": t2i})
    return _vectors(held, first, second, normalise)


def _are_transposed(first: Found, second: Found) -> bool:
    """Whether one is [I, C] and the other [C, I], as scores are and vectors are not."""
    if not _are_turned(first, second):
        return False
    is_square = first.array.shape == second.array.shape
    return not is_square or np.array_equal(first.array.read(), second.array.read().T)


def _are_turned(first: Found, second: Found) -> bool:
    """Whether the columns of one may be the rows of the other."""
    return len(first.array.shape) == 2 and first.array.shape == second.array.shape[::-1]


def _named(held: Held) -> Iterator[Found]:
    """The arrays that the user names; of two files without names, the only table of each."""
    for number, part in enumerate(held.parts):
        of_part = [each for each in held.every if each.part == number]
        for name in part.names:
            if name not in part.arrays.arrays:
                raise InputError(
                    f"{part.path}: holds no {name!r}, but {', '.join(map(str, of_part))[:300]}"
                )
            yield next(each for each in of_part if each.name == name)
        if not part.names and len(held.parts) > 1:
            tables = _tables(of_part)
            if len(tables) != 1:
                raise _unclear(part.path, tables, of_part)
            yield tables[0]


def _tables(every: Sequence[Found]) -> list[Found]:
    """The arrays of rows and columns that are neither ids nor what belongs together."""
    beside: tuple[Kind, ...] = ("ids", "texts", "owners", "truth")
    tables = [each for each in every if len(each.array.shape) > 1]
    of_scores = [each for each in tables if each.role.kind not in beside]
    return of_scores or tables


def _unclear(path: Path, candidates: Sequence[Found], every: Sequence[Found]) -> InputError:
    """The error where no array or several may be the scores."""
    other_form = _of_other_form(every)
    if other_form:
        return InputError(f"{path}: {other_form}")
    if not candidates:
        return InputError(
            f"{path}: holds {', '.join(map(str, every))[:300]}; expected a matrix of images x captions, "
            "or vectors of both"
        )
    one = candidates[0].name or "NAME"
    if len(candidates) == 1:
        return InputError(
            f"{path}: holds {candidates[0]}, vectors of one side; name the other side's too: "
            "images.npy:captions.npy"
        )
    listed = ", ".join(map(str, candidates[:8]))
    return InputError(
        f"{path}: holds {len(candidates)} arrays that may be meant: {listed}; name the scores, "
        f"{path}:{one}, or the vectors of images, then captions: {path}:{one}:{candidates[1].name}"
    )


def _of_other_form(every: Sequence[Found]) -> str:
    """What arrays are that hold vectors or scores in another form, and what makes one array of
    them; "" for others.
    """
    names = {each.name for each in every}
    if {"data", "indices", "indptr", "shape"} <= names:
        return "is a sparse matrix of scipy; numpy.save('scores.npy', scipy.sparse.load_npz(FILE).toarray())"
    if len(every) < FEWEST:
        return ""
    shapes = {each.array.shape for each in every}
    shape = every[0].array.shape
    are_vectors = len(shapes) == 1 and len(shape) == 1 and shape[0] > 1
    are_real = all(each.array.is_real for each in every)
    if not are_vectors or not are_real:
        return ""
    above = {each.name.rpartition(".")[0].partition(".")[0] for each in every if "." in each.name}
    of_sides = [name for name in sorted(above) if Name.of(name).side]
    which = "it"
    if len(of_sides) == 2:  # a dict for images and one for captions
        which = f"each of {' and '.join(of_sides)}"
    return (
        f"is a dict of {len(every):,} vectors by name, such as {every[0]}; of {which}, D, save "
        "numpy.stack(list(D.values())) as vectors and list(D) as image_ids or caption_ids, in one .npz"
    )


def _matrix(held: Held, ways: Mapping[Direction | None, Found]) -> Taken:
    """A matrix for both directions, or one for each."""
    path = held.path
    for each in ways.values():
        refuse_distances(held, each)
    blocks = {way: _block(path, each, way) for way, each in ways.items()}
    read = {way: as_similarity(block, str(path)) for way, block in blocks.items()}
    if len(read) > 1 and read["i2t"].shape != read["t2i"].shape:
        raise InputError(
            f"{path}: {ways['i2t']} and {ways['t2i']} are no two directions of one pool; expected images "
            "x captions, and captions x images"
        )
    source, *others = read.values()
    if others:
        source = Directions(read["i2t"], read["t2i"])  # type: ignore[arg-type]
    held_beside = beside(held, Rows(source.shape))
    found = identified(source.shape, held_beside.given, held.columns, path)
    words = " and ".join(str(each) for each in ways.values())
    if len(ways) > 1:
        words = f"scores of each direction: {words}"
    whole = Scores(source, found.pool, found.has_ids, in_words(words, found.said))
    scores = unscored.only_scored(whole, blocks, path)
    return Taken(scores, [*ways.values(), *held_beside.used(found)])


def _block(path: Path, found: Found, way: Direction | None) -> Any:
    """A matrix [I, C]; text → image scores are stored with a row for each caption."""
    if found.array.blocks is not None and way != "t2i":
        return found.array.blocks
    values = found.array.read()
    _refuse_empty(path, found)
    if way == "t2i":
        return values.T
    return values


def _vectors(held: Held, images: Found, captions: Found, normalise: bool) -> Taken:
    """Inner products of vectors, computed block by block."""
    for each in (images, captions):
        _refuse_empty(held.path, each)
    of_images = images.array.read()
    of_captions = captions.array.read()
    words = ""
    parts = (images.part, captions.part)
    rows = Rows((images.size, captions.size), parts)
    repeats = _repeats(of_images, of_captions)
    if repeats and not tells_repeats(held, rows, repeats):
        repeats = 0
    if repeats:
        of_images = of_images[::repeats]
        words = f"each image's vector is there {repeats} times, and counts once"
    source = retrieval.Embeddings(of_images, of_captions, normalise=normalise)
    held_beside = beside(held, Rows(source.shape, parts, max(repeats, 1)))
    try:
        found = identified(
            source.shape, held_beside.given, held.columns, held.path, of_vectors=True
        )
    except InputError as error:
        if images.name == captions.name == "0":  # of lists with one array each
            raise InputError(
                f"{error}; if they are tokens of one page and of one query, save arrays [1, tokens, D]"
            ) from None
        grouped = ""
        if source.shape[0] == source.shape[1]:
            grouped = mistakes.of_rows(source.images)
        if grouped:
            raise InputError(f"{held.path}: {grouped}") from None
        raise
    read_as = (
        f"vectors of images {images} and captions {captions}, inner products in {source.dtype}"
    )
    scores = Scores(
        source, found.pool, found.has_ids, in_words(read_as, words, found.said), of_vectors=True
    )
    return Taken(scores, [images, captions, *held_beside.used(found)])


def _repeats(images: np.ndarray, captions: np.ndarray) -> int:
    """How often each image's vector is there, one for each caption, as VSE++'s code keeps them; 0
    for once.
    """
    if images.ndim != 2 or len(images) != len(captions) or len(images) < 2:
        return 0
    differing = np.flatnonzero((images[1:64] != images[0]).any(1))
    if not len(differing):
        return 0
    each = int(differing[0]) + 1
    if each < 2 or len(images) % each:
        return 0
    first = images[::each]
    for place in range(1, each):
        if not np.array_equal(first, images[place::each]):
            return 0
    return each


def _lists(held: Held, ways: Sequence[tuple[Direction | None, Found, Found | None]]) -> Taken:
    """Each query's best candidates, and their scores where there are any."""
    taken: Taken = lazy.imported(LISTS)(held, ways)
    return taken


def _scores_of(listed: Found, held: Held) -> Found | None:
    """The scores of listed candidates: those of their shape, and direction where they have one."""
    same = [
        each
        for each in held.every
        if each.array.shape == listed.array.shape
        and each.role.kind != "listed"
        and (each.array.is_real or each.role.kind == "scores")
    ]
    of_direction = [each for each in same if each.role.direction == listed.role.direction]
    return next(iter(of_direction or same), None)


def refuse_distances(held: Held, found: Found | None) -> None:
    """Refuse what is called distances and would be ranked as scores."""
    if found is None or held.columns.distance or not Name.of(found.name).has(DISTANCES):
        return
    raise InputError(
        f"{held.path}: {found} is called distances; give --distance, which ranks the smallest first"
    )


def _refuse_empty(path: Path, found: Found) -> None:
    if 0 in found.array.shape:
        raise InputError(f"{path}: {found} is empty")
