"""How wide a table's columns are in print: an estimate, without running TeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.report.letter_widths import width
from pipeline.report.table import Cell, Panel

LEAST = 7.0
"""The least size of type in points: of tables, footnotes and deviations."""
GAPS = (6.0, 10.0)
"""Points between two columns: at least, and at most where there is room."""
NARROWEST = 50.0
"""Points: the least width of a column whose text is broken into lines."""
NUMBER = re.compile(r"(?=.*\d)(?P<sign>[+−-]?)(?P<whole>\d[\d,]*)?(?:\.(?P<decimals>\d+))?(?P<times>×?)")
"""The text of a cell in a column of numbers."""


@dataclass(frozen=True)
class FittedColumn:
    """How a column is set.

    Attributes:
        width: Its width in points.
        whole: The most digits before the decimal point.
        decimals: The most digits after it.
        signed: Whether a number has a sign.
        followed: Whether something stands after a number: ± or ×.
        fixed: Whether its width must be set: a heading above is wider than its columns, or text is broken into lines.
    """

    width: float
    whole: int = 0
    decimals: int = 0
    signed: bool = False
    followed: bool = False
    fixed: bool = False


def measure(panel: Panel, size: float, stretch: float = 1.0) -> tuple[FittedColumn, ...]:
    """Estimate the widths of a panel's columns.

    Args:
        panel: The panel.
        size: The size of type in points.
        stretch: How much wider the paper's font is at this size than the estimate says.

    Returns:
        The columns, wide enough for the headings above them.
    """
    size *= stretch
    cells = list(zip(*(row.cells for group in panel.groups for row in group.rows), strict=True))
    columns = []
    for number, column in enumerate(panel.columns):
        own = cells[number] if cells else ()
        heading = width(column.heading) * size
        text = max((width(cell.text, bool(cell.bold)) * size + width("".join(cell.marks)) * LEAST for cell in own),
                   default=0.0)
        columns.append(FittedColumn(max(heading, text)) if column.kind == "text" else _numbers(own, heading, size))
    return tuple(_widened(panel, columns, size))


def _numbers(cells: Sequence[Cell], heading: float, size: float) -> FittedColumn:
    found = [(cell, match) for cell in cells if cell.text and (match := NUMBER.fullmatch(cell.text))]
    whole = max((len((match["whole"] or "0").replace(",", "")) for _, match in found), default=1)
    decimals = max((len(match["decimals"] or "") for _, match in found), default=0)
    signed = any(match["sign"] for _, match in found)
    widest = max((width("−" * signed + "0" * whole + "," * ((whole - 1) // 3) + "." * bool(decimals) + "0" * decimals,
                        bool(cell.bold)) for cell, _ in found), default=0.0) * size
    after = max((width(" ± " + cell.spread) * LEAST if cell.spread else width(match["times"]) * size
                 for cell, match in found), default=0.0)
    return FittedColumn(max(heading, widest + after), whole, decimals, signed, after > 0)


def _widened(panel: Panel, columns: list[FittedColumn], size: float) -> list[FittedColumn]:
    """Columns under a heading that is wider than all of them share what is lacking."""
    for spans in panel.heading_rows():
        first = 0
        for title, count in spans:
            under = columns[first:first + count]
            if title and width(title) * size > total(under):
                share = (width(title) * size - GAPS[0] * (count - 1)) / count
                columns[first:first + count] = [replace(column, width=max(column.width, share), fixed=True)
                                                for column in under]
            first += count
    return columns


def total(columns: Sequence[FittedColumn], gap: float = GAPS[0]) -> float:
    """The width of a table.

    Args:
        columns: Its columns.
        gap: Points between two of them.

    Returns:
        The width in points.
    """
    return sum(column.width for column in columns) + gap * (len(columns) - 1)


def broken(panel: Panel, columns: Sequence[FittedColumn], available: float) -> tuple[FittedColumn, ...]:
    """Narrow the columns with the widest texts until all fit.

    Args:
        panel: The panel.
        columns: Its columns.
        available: The width that there is, in points.

    Returns:
        The columns; the text of those that are narrower is broken into lines.
    """
    found = list(columns)
    texts = [index for index, column in enumerate(panel.columns) if column.kind == "text"]
    for index in sorted(texts, key=lambda index: -found[index].width):
        lacking = total(found) - available
        if lacking > 0:
            narrower = min(found[index].width, max(NARROWEST, found[index].width - lacking))
            found[index] = replace(found[index], width=narrower, fixed=True)
    return tuple(found)
