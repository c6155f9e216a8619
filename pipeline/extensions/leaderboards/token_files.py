"""Two files of tokens, pages before queries: lists of tensors [tokens, D], as users of ColPali and
ColBERT save them, dicts of them by id, or arrays [N, tokens, D] that zeros pad.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

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
from pipeline.foundation.evaluation.retrieval.rounding import Precision, rounded
from pipeline.foundation.parts.errors import InputError, counted, refusing
from pipeline.judge.systems.scores.foreign import opening
from pipeline.judge.systems.scores.foreign.arrays import Arrays, require_stored
from pipeline.judge.systems.scores.foreign.file_sets import FileSet, Typed
from pipeline.judge.systems.scores.foreign.identified import Given, Scores, identified, in_words
from pipeline.judge.systems.scores.foreign.words import BOTH, VECTORS, Name
from pipeline.judge.systems.scores.judged import Columns


class Compared(NamedTuple):
    """How tokens are compared."""

    is_unit: bool = False  # whether they are divided by their lengths
    precision: Precision = "given"  # the type of tokens, products and sums
    has_padding: bool = False  # whether the padding of pages is compared, too


# How others compare tokens, by the names of `READINGS` -> what they do otherwise.
OTHERWISE: Mapping[str, Mapping[str, Any]] = {
    "MaxSim in float16": {"precision": "float16"},
    "MaxSim in bfloat16": {"precision": "bfloat16"},
    "padding": {"has_padding": True},
    "tokens of length 1": {"is_unit": True},
    "tokens as given": {"is_unit": False},
}


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
        files = f"{pages_file} and {queries_file}"
        with refusing(InputError, lambda error: f"{files}: {error}"):
            given = Given(page_ids, query_ids)
            rows = identified(shape, given, columns, pages_file, of_vectors=True)
        items = [counted(len(pages), "page"), counted(len(queries), "query")]
        said = in_words(
            f"tokens of {' and '.join(items)}, MaxSim in float32 without rows of zeros", rows.said
        )

        def compared(how: Compared) -> Scores:
            with refusing(InputError, lambda error: f"{files}: {error}"):
                source = _compared(pages, queries, how, str(pages_file))
            return Scores(source, rows.pool, rows.has_ids, said, of_vectors=True)

        own = Compared(is_unit=normalise)
        otherwise: dict[str, Callable[[], Scores]] = {}
        for name, changes in OTHERWISE.items():
            other = own._replace(**changes)
            if other != own:
                otherwise[name] = partial(compared, other)
        return compared(own)._replace(otherwise=otherwise)


def _compared(pages: list[Floats], queries: list[Floats], how: Compared, name: str) -> Lists:
    """The scores of all pairs of pages and queries, each [tokens, D] with its padding."""
    require_kept(len(queries), len(pages))
    padded_to = 0
    if how.has_padding:
        padded_to = max(map(len, pages))
    candidates = Candidates.of([_tokens(page, how) for page in pages], padded_to)
    scores = [maxsim(_tokens(query, how), candidates, how.precision) for query in queries]
    listed = Listed(
        np.repeat(np.arange(len(queries)), len(pages)),
        np.tile(np.arange(len(pages)), len(queries)),
        np.concatenate(scores).astype(np.float64),
    )
    lists = Lists((len(pages), len(queries)), {"t2i": listed}, name)
    lists.are_whole = True
    return lists


def _tokens(item: Floats, how: Compared) -> Floats:
    """The tokens of an item as they are compared."""
    tokens = tokens_of(item)
    if how.is_unit:
        tokens = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
    return rounded(tokens, how.precision)


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
    """The items of a file, with their padding, and their ids; None where it has none."""
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
    items: list[Floats] = []
    for array in arrays.values():
        values = array.read()
        if values.ndim == 3:
            items += list(values)
        else:
            items.append(values)
    ids = _ids([*arrays])
    if ids is not None and len(ids) != len(items):
        ids = None
    return items, ids


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
