"""Tables as text for a terminal."""

from pipeline.parts.wrapping import TERMINAL, printable
from pipeline.report.table import Panel


def to_text(panel: Panel) -> list[str]:
    """Write a panel as lines: each group's title, the headings and its rows, in aligned columns."""
    headings = [column.heading for column in panel.columns]
    groups = [[headings, *([printable(str(cell)) for cell in row.cells] for row in group.rows)]
              for group in panel.groups]
    widths = [max(map(len, column)) for column in zip(*(row for rows in groups for row in rows), strict=True)]
    gap = "  " if sum(widths) + 2 * len(widths) <= TERMINAL else " "
    lines = []
    for group, rows in zip(panel.groups, groups, strict=True):
        lines += [group.title] if group.title else []
        lines += ["  " + gap.join(map(str.ljust, row, widths)).rstrip() for row in rows]
        lines += [""] if group.title else []
    return lines
