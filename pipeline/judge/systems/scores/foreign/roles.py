"""Which array of a file is what: scores, vectors, ids, lists of the best. Found by names as tools
write them.
"""

from math import prod
from typing import Literal, NamedTuple

from pipeline.foundation.evaluation.retrieval import Direction, Side
from pipeline.judge.systems.scores.foreign.arrays import TEXT, Array
from pipeline.judge.systems.scores.foreign.words import IDS, LISTED, SCORES, VECTORS, Name

Kind = Literal["scores", "vectors", "ids", "texts", "owners", "truth", "listed", ""]


class Role(NamedTuple):
    """What an array is taken for."""

    kind: Kind  # "" if its name does not say it
    side: Side | None = None  # of vectors, ids and texts; of owners, which side has an entry each
    direction: Direction | None = None  # of scores and lists


def role(name: str, array: Array) -> Role:
    """What an array is, by its name, type and shape."""
    words = Name.of(name)
    if array.shape == ():
        return Role("ids", words.side) if words.is_of_ids else Role("")
    if len(array.shape) == 1 or _is_column(words, array):
        return _of_column(words, array)
    if len(array.shape) != 2:
        is_called_ids = words.has(IDS) and not words.has(SCORES | VECTORS | LISTED)
        return Role("ids", words.side) if is_called_ids and words.side else Role("")
    is_of_ids = array.is_whole or array.stored == TEXT
    is_table = words.maps is not None and (words.side is not None or "map" in words.words)
    if is_of_ids and is_table and not words.has(IDS | LISTED | SCORES):
        return Role("owners", words.maps)
    if not array.is_real and words.is_truth:
        return Role("truth")
    if array.is_real and words.has(IDS | LISTED) and not words.has(SCORES | VECTORS):
        is_of_ids = words.has(IDS)
    if is_of_ids and words.has(IDS | LISTED):
        return Role("listed", None, words.direction)
    if words.has(IDS) and words.side and not words.has(SCORES | VECTORS):
        return Role("ids", words.side)
    if words.has(SCORES) or words.direction:
        return Role("scores", None, words.direction)
    if words.side and (array.is_real or words.has(VECTORS)):
        return Role("vectors", words.side)
    return Role("")


def _is_column(words: Name, array: Array) -> bool:
    """Whether an array [n, 1] or [1, n] has a value for each image or caption."""
    if not array.shape or prod(array.shape) != max(array.shape) or words.direction:
        return False
    return words.maps is not None or (words.has(IDS) and not words.has(LISTED))


def _of_column(words: Name, array: Array) -> Role:
    is_dict = array.keys is not None
    if words.maps == "caption" or (words.maps and (is_dict or words.says_to)):
        return Role("owners", words.maps)
    if words.counts and (array.is_whole or array.is_real):
        return Role("owners", "image")
    if words.is_truth:
        return Role("truth", "caption")
    if words.has(IDS):
        return Role("ids", "caption" if words.maps else words.side)
    if array.stored == TEXT and not is_dict:
        return Role("texts" if words.side == "caption" else "ids", words.side)
    return Role("")
