"""Two files of tokens, pages before queries: lists of tensors [tokens, D], as users of ColPali and
ColBERT save them, dicts of them by id, or arrays [N, tokens, D] that zeros pad.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipeline.extensions.leaderboards.multi_vectors import (
    Candidates,
    Floats,
    maxsim,
    require_kept,
    tokens_of,
)
from pipeline.foundation.evaluation.retrieval import Lists
from pipeline.foundation.evaluation.retrieval.lists import Listed
from pipeline.foundation.parts.errors import InputError, counted, refusing
from pipeline.judge.systems.scores.foreign import opening
from pipeline.judge.systems.scores.foreign.arrays import Arrays, require_stored
from pipeline.judge.systems.scores.foreign.file_sets import FileSet, Typed
from pipeline.judge.systems.scores.foreign.identified import Given, Scores, identified, in_words
from pipeline.judge.systems.scores.foreign.words import BOTH, VECTORS, Name
from pipeline.judge.systems.scores.judged import Columns


class TokenFiles(FileSet):
    """PAGES:QUERIES, each item as its tokens; queries are ranked, pages are not."""

    @classmethod
    def recognises(cls, typed: Typed) -> bool:
        if len(typed) != 2 or any(names for _, names in typed):
            return False
        if not all(path.is_file() for path, _ in typed):
            return False
        held = [opening.read(path) for path, _ in typed]
        others = [arrays for arrays in held if not _is_of_tokens(arrays)]
        # An array [N, D] alone may be vectors of N items, or the tokens of one.
        return len(others) < 2 and all(map(_may_be_one_item, others))

    def scores(self, typed: Typed, columns: Columns, normalise: bool) -> Scores:
        (pages_file, _), (queries_file, _) = typed
        pages, page_ids = _items(pages_file)
        queries, query_ids = _items(queries_file)
        shape = (len(pages), len(queries))
        if 0 in shape:
            raise InputError(f"{pages_file} and {queries_file}: one of them holds nothing")
        if normalise:
            pages = [_of_length_1(item) for item in pages]
            queries = [_of_length_1(item) for item in queries]
        with refusing(InputError, lambda error: f"{pages_file} and {queries_file}: {error}"):
            require_kept(len(queries), len(pages))
            candidates = Candidates.of(pages)
            scores = np.concatenate([maxsim(query, candidates) for query in queries])
            given = Given(page_ids, query_ids)
            rows = identified(shape, given, columns, pages_file, of_vectors=True)
        listed = Listed(
            np.repeat(np.arange(len(queries)), len(pages)),
            np.tile(np.arange(len(pages)), len(queries)),
            scores.astype(np.float64),
        )
        source = Lists(shape, {"t2i": listed}, str(pages_file))
        source.are_whole = True
        items = [counted(len(pages), "page"), counted(len(queries), "query")]
        said = in_words(
            f"tokens of {' and '.join(items)}, MaxSim in float32 without rows of zeros", rows.said
        )
        return Scores(source, rows.pool, rows.has_ids, said, of_vectors=True)


def _is_of_tokens(arrays: Arrays | None) -> bool:
    """Whether a file holds an array of three axes alone, or nothing but tokens of items."""
    if arrays is None:
        return False
    names = [*arrays.arrays]
    found = [*arrays.arrays.values()]
    axes = {len(array.shape) for array in found}
    if len(axes) > 1 or not all(array.is_real for array in found):
        return False
    if len(found) == 1:
        return axes == {3}
    if len({array.shape[-1:] for array in found}) > 1 or _are_of_sides(names):
        return False
    are_batches = _ids(names) is None or all(array.shape[0] == 1 for array in found)
    return axes == {2} or (axes == {3} and are_batches)


def _are_of_sides(names: Sequence[str]) -> bool:
    """Whether arrays are called vectors, or by the sides that they are of, and not by ids."""
    words = [Name.of(name) for name in names]
    if any(each.has(VECTORS) for each in words):
        return True
    return all(each.words and BOTH.issuperset(each.words) for each in words)


def _may_be_one_item(arrays: Arrays | None) -> bool:
    """Whether a file holds one array of rows."""
    if arrays is None or len(arrays.arrays) > 1:
        return False
    (array,) = arrays.arrays.values()
    return len(array.shape) == 2 and array.is_real


def _items(path: Path) -> tuple[list[Floats], np.ndarray | None]:
    """The tokens of each item of a file, and the items' ids; None where it has none."""
    held = opening.read(path)
    assert held is not None
    arrays = held.arrays
    if len(arrays) > 1:
        require_stored(arrays.values(), path)
    if "" in arrays and len(arrays[""].shape) == 2:
        rows, size = arrays[""].shape
        raise InputError(
            f"{path}: holds {arrays['']} beside tokens of other items; save [1, {rows}, {size}] if they are "
            f"the tokens of one item, or [{rows}, 1, {size}] if they are {rows} items"
        )
    items: list[np.ndarray] = []
    for array in arrays.values():
        values = array.read()
        if values.ndim == 3:
            items += list(values)
        else:
            items.append(values)
    ids = _ids([*arrays])
    if ids is not None and len(ids) != len(items):
        ids = None
    return [tokens_of(item) for item in items], ids


def _ids(names: Sequence[str]) -> np.ndarray | None:
    """The ids of items, which are the names of their arrays; None for those of a list, or that
    NumPy numbered.
    """
    for numbered in ("{}", "arr_{}"):
        if [*names] == [numbered.format(number) for number in range(len(names))]:
            return None
    if "" in names:
        return None
    return np.array(names)


def _of_length_1(tokens: Floats) -> Floats:
    """Tokens divided by their lengths, none of which is 0."""
    return tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
