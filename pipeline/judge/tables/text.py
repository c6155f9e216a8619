"""Tables as text for a terminal."""

from collections.abc import Callable, Sequence

from pipeline.foundation.parts.wrapping import TERMINAL, printable, wrapped
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
    text_columns = []
    for column, *cells_of_column in zip(panel.columns, *cells, strict=True):
        text_columns.append([printable(column.heading), *_aligned(cells_of_column)])
    widths = [max(map(len, column)) for column in text_columns]
    table_width = sum(widths) + 2 * len(widths)
    gap = "  "
    if width is not None and table_width > width:
        gap = " "
    above = []
    for spans in panel.heading_rows():
        if any(title for title, _ in spans):
            above.append(_above(spans, widths, gap))
    rows = [list(map(str.ljust, row, widths)) for row in zip(*text_columns, strict=True)]
    headings = gap.join(rows.pop(0))
    is_narrow = width is not None and 2 + len(headings) > width

    head: list[str] = []
    for line in (*above, headings):
        label = line[: widths[0]]
        numbers = line[widths[0] + len(gap) :]
        if is_narrow:
            head.append(f"    {numbers.rstrip()}")
        else:
            head.append(_line(label, numbers, gap))
    lines: list[str] = []
    for group in panel.groups:
        if group.title:
            if lines:
                lines.append("")
            lines.append(printable(group.title))
        if group.title or not lines:
            lines += head
        for row in group.rows:
            label, *number_cells = map(_bold(strong), rows.pop(0), row.cells)
            numbers = gap.join(number_cells)
            if is_narrow:
                lines += [*_label_alone(label.rstrip(), width), f"    {numbers.rstrip()}"]
            else:
                lines.append(_line(label, numbers, gap))
    if any(group.title for group in panel.groups):
        lines.append("")
    return lines


def _label_alone(label: str, width: int | None) -> list[str]:
    """A row's name in a line of its own, or in several where it is wider than the terminal."""
    line = f"  {label}"
    if width is None or len(line) <= width:
        return [line]
    return wrapped(label, "  ", width).split("\n")


def _line(label: str, numbers: str, gap: str) -> str:
    return f"  {label}{gap}{numbers}".rstrip()


def _aligned(column: Sequence[Cell]) -> list[str]:
    """The texts of a column's cells; its numbers have their decimal points below each other."""
    digits_before_point = []
    for cell in column:
        digits = 0
        if cell.number is not None:
            before_point, _, _ = cell.text.partition(".")
            digits = len(before_point)
        digits_before_point.append(digits)
    texts = []
    widest = max(digits_before_point, default=0)
    for cell, digits in zip(column, digits_before_point, strict=True):
        indent = 0
        if digits:
            indent = widest - digits
        texts.append(" " * indent + printable(str(cell)))
    return texts


def _above(spans: Sequence[tuple[str, int]], widths: list[int], gap: str) -> str:
    """A row of headings that span columns; the last of a heading's columns is widened where the
    heading is longer.
    """
    headings = []
    column = 0
    for title, count in spans:
        heading = printable(title)
        next_column = column + count
        spanned_width = sum(widths[column:next_column]) + len(gap) * (count - 1)
        widths[next_column - 1] += max(0, len(heading) - spanned_width)
        headings.append(heading.ljust(spanned_width))
        column = next_column
    return gap.join(headings)


def _bold(strong: Strong) -> Callable[[str, Cell], str]:
    def written(cell_text: str, cell: Cell) -> str:
        if not cell.bold:
            return cell_text
        printed_number = printable(cell.text)
        return cell_text.replace(printed_number, strong(printed_number), 1)

    return written
