"""What the files that a user names hold: arrays, and which of them is what: scores, vectors, ids,
lists of the best. Found by names as tools write them.
"""

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Literal, NamedTuple

from pipeline.foundation.evaluation.retrieval import Direction, Side
from pipeline.judge.systems.scores.foreign.arrays import TEXT, Array, Arrays
from pipeline.judge.systems.scores.foreign.words import IDS, LISTED, SCORES, VECTORS, Name
from pipeline.judge.systems.scores.judged import Columns

Kind = Literal["scores", "vectors", "ids", "texts", "owners", "truth", "listed", ""]
# What has a value for each image or caption.
COLUMNS: tuple[Kind, ...] = ("ids", "texts", "owners", "truth")
# How many arrays that were not used a line lists.
SHOWN = 6


class Role(NamedTuple):
    """What an array is taken for."""

    kind: Kind  # "" if its name does not say it
    side: Side | None = None  # of vectors, ids and texts; of owners, which side has an entry each
    direction: Direction | None = None  # of scores and lists


class Part(NamedTuple):
    """A file that a user names, what it holds, and which of its arrays are named."""

    path: Path
    arrays: Arrays
    names: Sequence[str]


class Found(NamedTuple):
    """An array with what it is taken for, and where it is from."""

    part: int
    name: str
    array: Array
    role: Role

    def __str__(self) -> str:
        return f"{self.name} {self.array}".lstrip()

    @property
    def size(self) -> int:
        """How many rows it has, also of one column [1, n]; 0 for a single number."""
        shape = self.array.shape
        if self.role.kind in COLUMNS and shape[:1] == (1,):
            return max(shape)
        if not shape:
            return 0
        return shape[0]


class Held(NamedTuple):
    """What the named files hold, and what the user says of it."""

    parts: Sequence[Part]
    every: Sequence[Found]
    columns: Columns

    @classmethod
    def of_parts(cls, parts: Sequence[Part], columns: Columns) -> "Held":
        """Look at every array of some files."""
        every = []
        for number, part in enumerate(parts):
            for name, array in part.arrays.arrays.items():
                every.append(Found(number, name, array, role(name, array)))
        return cls(parts, every, columns)

    @property
    def path(self) -> Path:
        """The first file, for messages."""
        return self.parts[0].path

    def of(self, kind: Kind) -> list[Found]:
        """The arrays that are taken for one kind."""
        return [each for each in self.every if each.role.kind == kind]

    def direction(self, found: Found) -> Direction | None:
        """The direction of an array, by its name or by that of its file."""
        return found.role.direction or Name.of(self.parts[found.part].path.stem).direction

    def unused(self, used: Sequence[Found]) -> str:
        """List the arrays that were not used, for the user; "" if there are none."""
        unused = [each for each in self.every if each not in used and each.array.shape != ()]
        if not unused:
            return ""
        more = ""
        if len(unused) > SHOWN:
            more = f" and {len(unused) - SHOWN} more"
        shown = ", ".join(map(str, unused[:SHOWN]))
        return f"not used: {shown}{more}"


def role(name: str, array: Array) -> Role:
    """What an array is, by its name, type and shape."""
    words = Name.of(name)
    if array.shape == () and words.is_of_ids:
        return Role("ids", words.side)
    if array.shape == ():
        return Role("")
    if len(array.shape) == 1 or _is_column(words, array):
        return _of_column(words, array)
    if len(array.shape) != 2:
        is_called_ids = words.has(IDS) and not words.has(SCORES | VECTORS | LISTED)
        if is_called_ids and words.side:
            return Role("ids", words.side)
        return Role("")
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
    if words.has(IDS) and words.maps:
        return Role("ids", "caption")
    if words.has(IDS):
        return Role("ids", words.side)
    if array.stored != TEXT or is_dict:
        return Role("")
    if words.side == "caption":
        return Role("texts", "caption")
    return Role("ids", words.side)
