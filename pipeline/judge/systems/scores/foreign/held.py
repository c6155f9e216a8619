"""What the files that a user names hold: arrays, and what each is taken for."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pipeline.foundation.evaluation.retrieval import Direction
from pipeline.judge.systems.scores.foreign.arrays import Array, Arrays
from pipeline.judge.systems.scores.foreign.roles import Kind, Role, role
from pipeline.judge.systems.scores.foreign.words import Name
from pipeline.judge.systems.scores.judged import Columns

# What has a value for each image or caption.
COLUMNS: tuple[Kind, ...] = ("ids", "texts", "owners", "truth")
# How many arrays that were not used a line lists.
SHOWN = 6


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
        return shape[0] if shape else 0


class Held(NamedTuple):
    """What the named files hold, and what the user says of it."""

    parts: Sequence[Part]
    every: Sequence[Found]
    columns: Columns

    @classmethod
    def of_parts(cls, parts: Sequence[Part], columns: Columns) -> "Held":
        """Look at every array of some files."""
        every = [
            Found(number, name, array, role(name, array))
            for number, part in enumerate(parts)
            for name, array in part.arrays.arrays.items()
        ]
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
        more = f" and {len(unused) - SHOWN} more" if len(unused) > SHOWN else ""
        return f"not used: {', '.join(map(str, unused[:SHOWN]))}{more}"
