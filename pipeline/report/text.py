"""Tables as text for a terminal."""

from collections.abc import Callable, Sequence

from pipeline.parts.wrapping import TERMINAL, printable
from pipeline.report.table import Cell, Panel

Strong = Callable[[str], str]


def to_text(panel: Panel, strong: Strong = str, width: int | None = TERMINAL) -> list[str]:
    """Write a panel as lines: each group's title, the headings and its rows, with aligned decimal
    points.

    strong: writes a bold number. width: the terminal's, None for any; if rows do not fit, their
        names have own lines.
    """
    cells = [row.cells for group in panel.groups for row in group.rows]
    columns = [
        [printable(column.heading), *_aligned(texts)]
        for column, *texts in zip(panel.columns, *cells, strict=True)
    ]
    widths = [max(map(len, column)) for column in columns]
    gap = "  " if width is None or sum(widths) + 2 * len(widths) <= width else " "
    spans = [each for each in panel.heading_rows() if any(text for text, _ in each)]
    above = [_above(each, widths, gap) for each in spans]
    heading, *rows = (list(map(str.ljust, row, widths)) for row in zip(*columns, strict=True))
    is_narrow = width is not None and 2 + len(gap.join(heading)) > width

    def written(first: str, rest: str, name: bool = True) -> list[str]:
        if is_narrow:
            return (
                [f"  {first.rstrip()}", f"    {rest.rstrip()}"]
                if name
                else [f"    {rest.rstrip()}"]
            )
        return [f"  {first}{gap}{rest}".rstrip()]

    head = [
        line
        for text in (*above, gap.join(heading))
        for line in written(text[: widths[0]], text[widths[0] + len(gap) :], name=False)
    ]
    lines: list[str] = []
    for group in panel.groups:
        if group.title:
            lines += [*[""][: len(lines)], printable(group.title)]
        lines += head if group.title or not lines else []
        for row in group.rows:
            first, *rest = map(_bold(strong), rows.pop(0), row.cells)
            lines += written(first, gap.join(rest))
    return [*lines, ""] if any(group.title for group in panel.groups) else lines


def _aligned(column: Sequence[Cell]) -> list[str]:
    """The texts of a column's cells; its numbers have their decimal points below each other."""
    whole = [len(cell.text.partition(".")[0]) if cell.number is not None else 0 for cell in column]
    return [
        " " * (max(whole) - digits if digits else 0) + printable(str(cell))
        for cell, digits in zip(column, whole, strict=True)
    ]


def _above(spans: Sequence[tuple[str, int]], widths: list[int], gap: str) -> str:
    """A row of headings that span columns; the last of a heading's columns is widened where the
    heading is longer.
    """
    texts, place = [], 0
    for title, count in spans:
        text = printable(title)
        size = sum(widths[place : place + count]) + len(gap) * (count - 1)
        widths[place + count - 1] += max(0, len(text) - size)
        texts.append(text.ljust(size))
        place += count
    return gap.join(texts)


def _bold(strong: Strong) -> Callable[[str, Cell], str]:
    def written(text: str, cell: Cell) -> str:
        shown = printable(cell.text)
        return text.replace(shown, strong(shown), 1) if cell.bold else text

    return written
