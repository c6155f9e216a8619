"""A table before it is LaTeX or Markdown: what stands where, what is bold, what carries a footnote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

Colour = Literal["black", "blue", "red"]


@dataclass(frozen=True)
class Cell:
    """One cell. All text is plain; the renderers escape it.

    Attributes:
        text: what is printed.
        spread: the part after ±, '' for none.
        bold: the colour it is set bold in, None for not bold.
        marks: the footnote marks it carries, each a key of the table's notes.
    """

    text: str = ""
    spread: str = ""
    bold: Colour | None = None
    marks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Column:
    """One column: its heading, the headings that span it (outermost first), and how it is aligned."""

    heading: str
    above: tuple[str, ...] = ()
    align: Literal["l", "r", "c"] = "r"


@dataclass(frozen=True)
class Row:
    """Cells, one for each column, and the names of the systems in `metrics.json` that the numbers come
    from."""

    cells: tuple[Cell, ...]
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class RowGroup:
    """Rows that belong together; a titled group begins a section with a rule, an untitled one is only set
    apart by space."""

    rows: tuple[Row, ...]
    title: str = ""


@dataclass(frozen=True)
class Note:
    """A line below a panel; `mark` is '' for a remark on the whole of it."""

    text: str
    mark: str = ""


@dataclass(frozen=True)
class Panel:
    """A grid with its own columns: a table has several when its numbers may not share headings.

    Raises `ValueError` when a row has not as many cells as there are columns, when a cell's mark has no note,
    or when two notes share a mark: a table with such a fault would mislead, whatever renders it.
    """

    columns: tuple[Column, ...]
    groups: tuple[RowGroup, ...]
    title: str = ""
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        marks = [note.mark for note in self.notes if note.mark]
        if len(marks) != len(set(marks)):
            raise ValueError(f"two notes share a mark in {marks}")
        for row in (row for group in self.groups for row in group.rows):
            if len(row.cells) != len(self.columns):
                raise ValueError(f"expected {len(self.columns)} cells, received {len(row.cells)}: {row}")
            if missing := {mark for cell in row.cells for mark in cell.marks} - set(marks):
                raise ValueError(f"no note explains the marks {sorted(missing)}")

    def heading_rows(self) -> Iterator[list[tuple[str, int]]]:
        """The rows of spanning headings, outermost first: (heading, number of columns), '' where a column has
        none."""
        for level in range(max(len(column.above) for column in self.columns)):
            spans = groupby(self.columns, key=lambda column: column.above[: level + 1])
            yield [
                (above[level] if len(above) > level else "", width)
                for above, width in ((above, len(list(members))) for above, members in spans)
            ]


@dataclass(frozen=True)
class Table:
    """A whole table: the paper's panel first, then one for each other test set."""

    name: str
    caption: str
    panels: tuple[Panel, ...]
