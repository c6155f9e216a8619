"""The scores that the arrays of one or two files make: a matrix, inner products of vectors, or
lists of the best.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.evaluation import retrieval
from pipeline.evaluation.retrieval import Collection, Direction, Side
from pipeline.evaluation.retrieval.similarity import Directions, as_similarity
from pipeline.parts.errors import InputError
from pipeline.systems.scores.foreign.arrays import Array, Arrays
from pipeline.systems.scores.foreign.identified import SIDES, Given, identified
from pipeline.systems.scores.foreign.roles import Kind, Role, role
from pipeline.systems.scores.foreign.top_lists import of_arrays as lists_of
from pipeline.systems.scores.judged import Columns


class Part(NamedTuple):
    """A file that a user names, what it holds, and which of its arrays are named."""

    path: Path
    arrays: Arrays
    names: Sequence[str]


class Scores(NamedTuple):
    """Scores, and what is known of them."""

    source: Any  # as `as_similarity` takes it
    pool: Collection  # the images and captions
    has_ids: bool
    read_as: str  # what was read as what, for the user
    of_vectors: bool = False


class _Found(NamedTuple):
    """An array with what it is taken for, and where it is from."""

    part: int
    name: str
    array: Array
    role: Role

    def __str__(self) -> str:
        return f"{self.name} {self.array}".lstrip()


def of_parts(parts: Sequence[Part], columns: Columns, normalise: bool) -> Scores:
    """Find the scores in the arrays of one or two files."""
    path, every = parts[0].path, [*_every(parts)]
    named = [*_named(parts, every)]
    if len(named) > 2:
        raise InputError(
            f"{path}: {len(named)} arrays are named, expected one of scores, or two: vectors of images "
            "and captions, or candidates and their scores"
        )
    if len(named) == 2:
        first, second = named
        if first.array.is_whole and first.array.shape == second.array.shape:
            return _lists(path, [(first.role.direction, first, second)], every, columns)
        return _vectors(path, first, second, every, columns, normalise)
    if named:
        return _matrix(path, {None: named[0]}, every, columns)
    if listed := _of(every, "listed"):
        return _lists(
            path,
            [(each.role.direction, each, _scores_of(each, every)) for each in listed],
            every,
            columns,
        )
    matrices = _of(every, "scores")
    ways = {each.role.direction: each for each in matrices}
    if len(ways) == len(matrices) and (len(ways) == 1 or ways.keys() == {"i2t", "t2i"}):
        return _matrix(path, ways, every, columns)
    vectors = _of(every, "vectors")
    if not matrices and len(vectors) == 2 and {each.role.side for each in vectors} == {*SIDES}:
        images, captions = sorted(vectors, key=lambda each: SIDES.index(each.role.side or "image"))
        return _vectors(path, images, captions, every, columns, normalise)
    tables = [each for each in every if len(each.array.shape) > 1]
    if len(tables) == 1 and tables[0].role.kind != "vectors":
        return _matrix(path, {None: tables[0]}, every, columns)
    raise _unclear(path, matrices or tables, every)


def _every(parts: Sequence[Part]) -> Iterator[_Found]:
    for number, part in enumerate(parts):
        for name, array in part.arrays.arrays.items():
            yield _Found(number, name, array, role(name, array))


def _named(parts: Sequence[Part], every: Sequence[_Found]) -> Iterator[_Found]:
    """The arrays that the user names; of two files without names, the only table of each."""
    for number, part in enumerate(parts):
        of_part = [each for each in every if each.part == number]
        for name in part.names:
            if name not in part.arrays.arrays:
                raise InputError(
                    f"{part.path}: holds no {name!r}, but {', '.join(map(str, of_part))[:300]}"
                )
            yield next(each for each in of_part if each.name == name)
        if not part.names and len(parts) > 1:
            tables = [each for each in of_part if len(each.array.shape) > 1]
            if len(tables) != 1:
                raise _unclear(part.path, tables, of_part)
            yield tables[0]


def _of(every: Sequence[_Found], kind: Kind) -> list[_Found]:
    return [each for each in every if each.role.kind == kind]


def _unclear(path: Path, candidates: Sequence[_Found], every: Sequence[_Found]) -> InputError:
    """The error where no array or several may be the scores."""
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


def _matrix(
    path: Path, ways: dict[Direction | None, _Found], every: Sequence[_Found], columns: Columns
) -> Scores:
    """A matrix for both directions, or one for each."""
    read = {way: as_similarity(_block(path, each, way), str(path)) for way, each in ways.items()}
    if len(read) == 1:
        (source,) = read.values()
    elif read["i2t"].shape != read["t2i"].shape:
        raise InputError(
            f"{path}: {ways['i2t']} and {ways['t2i']} are no two directions of one pool; expected images "
            "x captions, and captions x images"
        )
    else:
        source = Directions(read["i2t"], read["t2i"])  # type: ignore[arg-type]
    pool, has_ids = identified(source.shape, _given(path, source.shape, every), columns, path)
    words = " and ".join(str(each) for each in ways.values())
    return Scores(source, pool, has_ids, words)


def _block(path: Path, found: _Found, way: Direction | None) -> Any:
    """A matrix [I, C]; text → image scores are stored with a row for each caption."""
    if found.array.blocks is not None and way != "t2i":
        return found.array.blocks
    values = found.array.read()
    _refuse_empty(path, found)
    return values.T if way == "t2i" else values


def _vectors(
    path: Path,
    images: _Found,
    captions: _Found,
    every: Sequence[_Found],
    columns: Columns,
    normalise: bool,
) -> Scores:
    """Inner products of vectors, computed block by block."""
    for each in (images, captions):
        _refuse_empty(path, each)
    vectors, words = [images.array.read(), captions.array.read()], ""
    if repeats := _repeats(*vectors):
        vectors[0], words = (
            vectors[0][::repeats],
            f"; each image's vector is there {repeats} times, and counts once",
        )
    source = retrieval.Embeddings(vectors[0], vectors[1], normalise=normalise)
    pool, has_ids = identified(
        source.shape,
        _given(path, source.shape, every, (images.part, captions.part)),
        columns,
        path,
        of_vectors=True,
    )
    return Scores(
        source,
        pool,
        has_ids,
        f"vectors of images {images} and captions {captions}, inner products in "
        f"{source.dtype}{words}",
        of_vectors=True,
    )


def _repeats(images: np.ndarray, captions: np.ndarray) -> int:
    """How often each image's vector is there, one for each caption, as VSE++'s code keeps them; 0
    for once.
    """
    if images.ndim != 2 or len(images) != len(captions) or len(images) < 2:
        return 0
    other = np.flatnonzero((images[1:64] != images[0]).any(1))
    each = int(other[0]) + 1 if len(other) else 0
    if each < 2 or len(images) % each:
        return 0
    first = images[::each]
    return (
        each if all(np.array_equal(first, images[place::each]) for place in range(1, each)) else 0
    )


def _lists(
    path: Path,
    ways: Sequence[tuple[Direction | None, _Found, _Found | None]],
    every: Sequence[_Found],
    columns: Columns,
) -> Scores:
    taken = [
        (way, ids.array.read(), None if scores is None else scores.array.read())
        for way, ids, scores in ways
    ]
    given = Given(*(_ids(every, side, None, (-1, -1)) for side in SIDES))
    source, pool, has_ids, said = lists_of(path, taken, given, columns)
    words = " and ".join(
        f"{ids}, best first" if scores is None else f"{ids} with {scores}"
        for _, ids, scores in ways
    )
    return Scores(source, pool, has_ids, f"{words}: {said}")


def _scores_of(listed: _Found, every: Sequence[_Found]) -> _Found | None:
    """The scores of listed candidates: those of their shape, and direction where they have one."""
    same = [each for each in every if each.array.shape == listed.array.shape and each.array.is_real]
    of_direction = [each for each in same if each.role.direction == listed.role.direction]
    return next(iter(of_direction or same), None)


def _given(
    path: Path, shape: tuple[int, int], every: Sequence[_Found], parts: tuple[int, int] = (-1, -1)
) -> Given:
    """The ids of rows and columns, and each caption's image, where files have them."""
    owners = next(
        (each.array.read() for each in _of(every, "owners") if each.array.shape == shape[1:]), None
    )
    return Given(_ids(every, "image", shape, parts), _ids(every, "caption", shape, parts), owners)


def _ids(
    every: Sequence[_Found], side: Side, shape: tuple[int, int] | None, parts: tuple[int, int]
) -> np.ndarray | None:
    """The ids of a side: by their name, by the file of its vectors, or where only that side has so
    many.
    """
    found, at = _of(every, "ids"), SIDES.index(side)
    by_name = [each for each in found if each.role.side == side]
    by_file = [
        each
        for each in found
        if each.role.side is None and each.part == parts[at] and parts[0] != parts[1]
    ]
    by_size = [
        each
        for each in found
        if each.role.side is None
        and shape is not None
        and shape[0] != shape[1]
        and len(each.array.read()) == shape[at]
        and parts[0] == parts[1]
    ]
    return next((each.array.read() for each in (*by_name, *by_file, *by_size)), None)


def _refuse_empty(path: Path, found: _Found) -> None:
    if 0 in found.array.shape:
        raise InputError(f"{path}: {found} is empty")
