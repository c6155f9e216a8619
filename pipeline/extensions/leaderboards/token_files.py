"""Two files of tokens, pages before queries: lists of tensors [tokens, D], as users of ColPali and
ColBERT save them, or arrays [N, tokens, D] that zeros pad.
"""

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
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.judge.systems.scores.foreign import opening
from pipeline.judge.systems.scores.foreign.arrays import Array, Arrays, require_stored
from pipeline.judge.systems.scores.foreign.file_sets import FileSet, Typed
from pipeline.judge.systems.scores.foreign.identified import Given, Scores, identified, in_words
from pipeline.judge.systems.scores.judged import Columns


class TokenFiles(FileSet):
    """PAGES:QUERIES, each item as its tokens; queries are ranked, pages are not."""

    @classmethod
    def recognises(cls, typed: Typed) -> bool:
        if len(typed) != 2 or any(names for _, names in typed):
            return False
        are_files = all(path.is_file() for path, _ in typed)
        return are_files and all(_is_of_tokens(opening.read(path)) for path, _ in typed)

    def scores(self, typed: Typed, columns: Columns, normalise: bool) -> Scores:
        (pages_file, _), (queries_file, _) = typed
        pages = _items(pages_file)
        queries = _items(queries_file)
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
        listed = Listed(
            np.repeat(np.arange(len(queries)), len(pages)),
            np.tile(np.arange(len(pages)), len(queries)),
            scores.astype(np.float64),
        )
        source = Lists(shape, {"t2i": listed}, str(pages_file))
        source.are_whole = True
        rows = identified(shape, Given(), columns, pages_file)
        said = in_words(
            f"tokens of {len(pages):,} pages and {len(queries):,} queries, MaxSim in float32 without rows of "
            "zeros",
            rows.said,
        )
        return Scores(source, rows.pool, rows.has_ids, said, of_vectors=True)


def _is_of_tokens(arrays: Arrays | None) -> bool:
    """Whether a file holds an array of three axes alone, or nothing but tokens of items."""
    if arrays is None:
        return False
    found = list(arrays.arrays.values())
    if len(found) == 1:
        return len(found[0].shape) == 3 and found[0].is_real
    names = [*arrays.arrays]
    are_items = names == [str(number) for number in range(len(names))]
    return are_items and all(_is_item(each, found[0]) for each in found)


def _is_item(array: Array, first: Array) -> bool:
    are_rows = len(array.shape) == 2 and len(first.shape) == 2
    return are_rows and array.is_real and array.shape[1] == first.shape[1]


def _items(path: Path) -> list[Floats]:
    """The tokens of each item of a file that `_is_of_tokens` knows."""
    held = opening.read(path)
    assert held is not None
    arrays = [*held.arrays.values()]
    if len(arrays) > 1:
        require_stored(arrays, path)
    read = [each.read() for each in arrays]
    if len(read) == 1:
        read = list(read[0])
    return [tokens_of(item) for item in read]


def _of_length_1(tokens: Floats) -> Floats:
    """Tokens divided by their lengths, none of which is 0."""
    return tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
