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
    cells = []
    for group in panel.groups:
        cells += [row.cells for row in group.rows]
    columns = []
    for column, *texts in zip(panel.columns, *cells, strict=True):
        columns.append([printable(column.heading), *_aligned(texts)])
    widths = [max(map(len, column)) for column in columns]
    needed = sum(widths) + 2 * len(widths)
    gap = "  "
    if width is not None and needed > width:
        gap = " "
    above = []
    for spans in panel.heading_rows():
        if any(title for title, _ in spans):
            above.append(_above(spans, widths, gap))
    rows = [list(map(str.ljust, row, widths)) for row in zip(*columns, strict=True)]
    headings = gap.join(rows.pop(0))
    is_narrow = width is not None and 2 + len(headings) > width

    head: list[str] = []
    for line in (*above, headings):
        first = line[: widths[0]]
        rest = line[widths[0] + len(gap) :]
        if is_narrow:
            head.append(f"    {rest.rstrip()}")
        else:
            head.append(_line(first, rest, gap))
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
        digits = 0
        if cell.number is not None:
            before_point, _, _ = cell.text.partition(".")
            digits = len(before_point)
        whole.append(digits)
    texts = []
    for cell, digits in zip(column, whole, strict=True):
        indent = 0
        if digits:
            indent = max(whole) - digits
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
        end = place + count
        size = sum(widths[place:end]) + len(gap) * (count - 1)
        widths[end - 1] += max(0, len(text) - size)
        texts.append(text.ljust(size))
        place = end
    return gap.join(texts)


def _bold(strong: Strong) -> Callable[[str, Cell], str]:
    def written(text: str, cell: Cell) -> str:
        if not cell.bold:
            return text
        shown = printable(cell.text)
        return text.replace(shown, strong(shown), 1)

    return written
