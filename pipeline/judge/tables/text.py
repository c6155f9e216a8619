"""Tables as text for a terminal."""

from collections.abc import Callable, Sequence

from pipeline.foundation.parts.wrapping import TERMINAL, printable
from pipeline.judge.tables.table import Cell, Panel

Strong = Callable[[str], str]


def to_text(panel: Panel, strong: Strong = str, width: int | None = TERMINAL) -> list[str]:
    """Write a panel as lines: each group's title, the headings and its rows, with aligned decimal
    points.

    strong: writes a bold number. width: the terminal's, None for any; if rows do not fit, their
        names have own lines.
    """
    cells = [row.cells for group in panel.groups for row in group.rows]
    columns = []
    for column, *texts in zip(panel.columns, *cells, strict=True):
        columns.append([printable(column.heading), *_aligned(texts)])
    widths = [max(map(len, column)) for column in columns]
    needed = sum(widths) + 2 * len(widths)
    gap = "  " if width is None or needed <= width else " "
    above = []
    for spans in panel.heading_rows():
        if any(title for title, _ in spans):
            above.append(_above(spans, widths, gap))
    heading, *rows = (list(map(str.ljust, row, widths)) for row in zip(*columns, strict=True))
    is_narrow = width is not None and 2 + len(gap.join(heading)) > width

    head: list[str] = []
    for line in (*above, gap.join(heading)):
        first = line[: widths[0]]
        rest = line[widths[0] + len(gap) :]
        head.append(f"    {rest.rstrip()}" if is_narrow else _line(first, rest, gap))
    lines: list[str] = []
    for group in panel.groups:
        if group.title:
            if lines:
                lines.append("")
            lines.append(printable(group.title))
        if group.title or not lines:
            lines += head
        for row in group.rows:
            first, *others = map(_bold(strong), rows.pop(0), row.cells)
            rest = gap.join(others)
            if is_narrow:
                lines += [f"  {first.rstrip()}", f"    {rest.rstrip()}"]
            else:
                lines.append(_line(first, rest, gap))
    if any(group.title for group in panel.groups):
        lines.append("")
    return lines


def _line(first: str, rest: str, gap: str) -> str:
    return f"  {first}{gap}{rest}".rstrip()


def _aligned(column: Sequence[Cell]) -> list[str]:
    """The texts of a column's cells; its numbers have their decimal points below each other."""
    whole = []
    for cell in column:
        digits = len(cell.text.partition(".")[0]) if cell.number is not None else 0
        whole.append(digits)
    texts = []
    for cell, digits in zip(column, whole, strict=True):
        indent = max(whole) - digits if digits else 0
        texts.append(" " * indent + printable(str(cell)))
    return texts


def _above(spans: Sequence[tuple[str, int]], widths: list[int], gap: str) -> str:
    """A row of headings that span columns; the last of a heading's columns is widened where the
    heading is longer.
    """
    texts = []
    place = 0
    for title, count in spans:
        text = printable(title)
        size = sum(widths[place : place + count]) + len(gap) * (count - 1)
        widths[place + count - 1] += max(0, len(text) - size)
        texts.append(text.ljust(size))
        place += count
    return gap.join(texts)


def _bold(strong: Strong) -> Callable[[str, Cell], str]:
    def written(text: str, cell: Cell) -> str:
        if not cell.bold:
            return text
        shown = printable(cell.text)
        return text.replace(shown, strong(shown), 1)

    return written
