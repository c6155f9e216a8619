"""What the columns of a table look like, for a message on one of another form: ids, ranks,
scores.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

# Rows that are looked at, and those below which a column says nothing.
ROWS = 1000
FEWEST = 10
# Columns of a run in any form.
FEWEST_COLUMNS = 3
MOST_COLUMNS = 8


class Column(NamedTuple):
    """What a column looks like."""

    kind: str  # constant, ranks, whole, scores or texts
    different: int  # how many different cells it has
    first: str  # its first cell
    is_text: bool = False  # whether any cell is no number

    def __str__(self) -> str:
        if self.kind == "constant":
            return f"{self.first[:20]!a} in every row"
        if self.kind == "whole":
            return f"whole numbers, {self.different:,} different"
        if self.kind == "texts":
            return f"texts such as {self.first[:20]!a}"
        return self.kind


def columns(rows: Sequence[Sequence[str]]) -> list[Column]:
    """Look at the columns of some rows, all of the same length."""
    return [_column(cells) for cells in zip(*rows, strict=True)]


def described(seen: Sequence[Column]) -> str:
    """Say what columns look like."""
    return ", ".join(f"column {number} like {each}" for number, each in enumerate(seen, 1))


def are_pairs(seen: Sequence[Column], count: int) -> bool:
    """Whether columns look like those of queries, candidates and scores or ranks, in any order, and
    not like a row of scores for each image. count: the rows that were looked at.
    """
    if count < FEWEST or not FEWEST_COLUMNS <= len(seen) <= MOST_COLUMNS:
        return False
    kinds = [column.kind for column in seen]
    if kinds.count("scores") > 1 or not {"scores", "ranks"} & {*kinds}:
        return False
    ids = [column for column in seen if column.kind in ("whole", "texts")]
    if len(ids) + kinds.count("ranks") < 2:
        return False
    return any(column.different < count for column in ids)


def _column(cells: Sequence[str]) -> Column:
    different = len({*cells})
    first = cells[0]
    is_constant = different == 1 and len(cells) > 1
    try:
        values = [float(cell) for cell in cells]
    except ValueError:
        kind = "constant" if is_constant else "texts"
        return Column(kind, different, first, is_text=True)
    if is_constant:
        return Column("constant", different, first)
    if not all(value.is_integer() for value in values):
        return Column("scores", different, first)
    if _are_ranks(values):
        return Column("ranks", different, first)
    return Column("whole", different, first)


def _are_ranks(values: Sequence[float]) -> bool:
    """Whether values count up from 0 or 1, again and again."""
    start = values[0]
    if start not in (0, 1) or values.count(start) < 2:
        return False
    return all(following in (value + 1, start) for value, following in pairwise(values))
