"""What the columns of a table look like, for a message on one of another form: ids, ranks,
scores.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

# Rows that are looked at, and those below which a column says nothing.
ROWS, FEWEST = 1000, 10
# Columns of a run in any form.
FEWEST_COLUMNS, MOST_COLUMNS = 3, 8


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
    kinds = [each.kind for each in seen]
    ids = [each for each in seen if each.kind in ("whole", "texts")]
    if (
        count < FEWEST
        or not FEWEST_COLUMNS <= len(seen) <= MOST_COLUMNS
        or kinds.count("scores") > 1
    ):
        return False
    named = len(ids) + kinds.count("ranks")
    has_value = "scores" in kinds or "ranks" in kinds
    return has_value and named >= 2 and any(each.different < count for each in ids)


def _column(cells: Sequence[str]) -> Column:
    different, first = len({*cells}), cells[0]
    is_constant = different == 1 and len(cells) > 1
    try:
        values = [float(cell) for cell in cells]
    except ValueError:
        return Column("constant" if is_constant else "texts", different, first, is_text=True)
    if is_constant:
        return Column("constant", different, first)
    if not all(value.is_integer() for value in values):
        return Column("scores", different, first)
    start = values[0]
    steps = pairwise(values)
    counts = start in (0, 1) and all(other in (one + 1, start) for one, other in steps)
    return Column("ranks" if counts and values.count(start) > 1 else "whole", different, first)
