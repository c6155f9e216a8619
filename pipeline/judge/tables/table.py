"""A table before it is written as text, Markdown, LaTeX or HTML: the request for it, cells, bold,
footnotes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Context, Decimal
from itertools import groupby
from typing import Literal

from pipeline.foundation.evaluation import statistics
from pipeline.foundation.evaluation.metrics import Statistic

Colour = Literal["black", "blue", "red"]
# A raised part in the text of a cell or caption: T^ANCE.
RAISED = re.compile(r"(?<=[A-Z])\^([A-Z]+)")
# The text of a cell without a number.
MISSING = "–"


# A test set and what was measured on it.
MetricKey = tuple[str, Statistic]


@dataclass(frozen=True)
class Cell:
    """One cell: a text, or a number. Writers set the number, and escape the text."""

    # In a column of numbers: a number with the digits that are shown, or `MISSING`.
    content: str | Decimal = ""
    spread: Decimal | None = None  # its standard deviation
    bold: Colour | None = None  # the colour it is set bold in, None for not bold
    marks: tuple[str, ...] = ()  # the footnote marks it carries, each a key of the panel's notes
    interval: tuple[Decimal, Decimal] | None = None  # its 95 % interval
    is_difference: bool = False  # whether a number above 0 has a plus sign
    is_factor: bool = False  # whether × follows it

    @property
    def number(self) -> Decimal | None:
        """The number, None for a text."""
        if isinstance(self.content, Decimal):
            return self.content
        return None

    @property
    def text(self) -> str:
        """Its content as plain text: 45.9, −0.3, 147,000×."""
        if isinstance(self.content, str):
            return self.content
        return self._plain(self.content) + "×" * self.is_factor

    @property
    def after(self) -> str:
        """What follows the number as plain text, " ± 0.3" or " [45.0, 46.8]"; "" for nothing."""
        if self.interval:
            low, high = map(self._plain, self.interval)
            return f" [{low}, {high}]"
        if self.spread is None:
            return ""
        return f" ± {self.spread}"

    def __str__(self) -> str:
        return self.text + self.after

    def _plain(self, number: Decimal) -> str:
        sign = ""
        if number < 0:
            sign = "−"
        elif number > 0 and self.is_difference:
            sign = "+"
        return f"{sign}{abs(number):,}"


@dataclass(frozen=True)
class Column:
    """One column."""

    heading: str  # Its own heading
    above: tuple[str, ...] = ()  # The headings that span it and its neighbours, outermost first
    # Text is aligned left, numbers by their decimal points.
    kind: Literal["text", "number"] = "number"
    key: MetricKey = ("", Statistic("", ""))  # For a column of numbers: their test set and metric
    less_is_better: bool = False  # Whether its smallest number is the best one


@dataclass(frozen=True)
class TableRow:
    """One row."""

    cells: tuple[Cell, ...]  # one for each column
    # The systems in `results/metrics.json` that its numbers come from.
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class RowGroup:
    """Rows that belong together."""

    rows: tuple[TableRow, ...]
    # A heading; the group then begins a section with a rule. "" for a group that is only set apart
    # by space.
    title: str = ""

    def marked(self, other: Mapping[str, str]) -> "RowGroup":
        """The same rows with other marks instead of some."""
        rows = []
        for row in self.rows:
            cells = []
            for cell in row.cells:
                other_marks = tuple(other.get(mark, mark) for mark in cell.marks)
                cells.append(replace(cell, marks=other_marks))
            rows.append(replace(row, cells=tuple(cells)))
        return replace(self, rows=tuple(rows))

    def marks(self) -> Iterator[str]:
        """The marks of its cells, from left to right and top to bottom."""
        for row in self.rows:
            for cell in row.cells:
                yield from cell.marks


@dataclass(frozen=True)
class Note:
    """A line below a panel."""

    text: str  # what it says
    # The mark of the cells that it explains, "" for a remark on the whole panel. Those of `LETTERS`
    # are in the order of these cells, others have a fixed meaning.
    mark: str = ""
    test_set: str = ""  # for a remark: it is shown if this test set has a column; "" for always


@dataclass(frozen=True)
class Panel:
    """A grid with its own columns and caption. A table has several if its numbers must not share
    headings.
    """

    # The columns, from left to right; those of text before those of numbers.
    columns: tuple[Column, ...]
    groups: tuple[RowGroup, ...]  # the rows, from top to bottom
    caption: str = ""  # what it shows
    notes: tuple[Note, ...] = ()  # the lines below it
    key: str = ""  # its key among the panels of its table, "" for the first
    made_from: tuple[str, ...] = ()  # what made its measured numbers, a line each; not printed
    colours: str = ""  # the caption's sentence on colours, "" if bold numbers have none

    def __post_init__(self) -> None:
        marks = [note.mark for note in self.notes if note.mark]
        if len(marks) != len(set(marks)):
            raise ValueError(f"two notes share a mark in {marks}")
        for group in self.groups:
            for row in group.rows:
                if len(row.cells) != len(self.columns):
                    raise ValueError(
                        f"expected {len(self.columns)} cells, received {len(row.cells)}: {row}"
                    )
            missing = set(group.marks()) - set(marks)
            if missing:
                raise ValueError(f"no note explains the marks {sorted(missing)}")

    def lettered(self) -> "Panel":
        """Keep the notes that shown cells and test sets need, lettered in the order in which cells
        refer to them.
        """
        shown: dict[str, None] = {}
        for group in self.groups:
            shown |= dict.fromkeys(group.marks())
        test_sets = {"", *(column.key[0] for column in self.columns)}
        notes = []
        for note in self.notes:
            is_needed = note.test_set in test_sets
            if note.mark:
                is_needed = note.mark in shown
            if is_needed:
                notes.append(note)
        in_order = [mark for mark in shown if mark in statistics.LETTERS]
        letters = dict(zip(in_order, statistics.LETTERS, strict=False))
        by_letter = {letters[note.mark]: note for note in notes if note.mark in letters}
        lettered = [
            replace(by_letter[mark], mark=mark) for mark in statistics.LETTERS if mark in by_letter
        ]
        lettered += [note for note in notes if note.mark not in letters]
        groups = tuple(group.marked(letters) for group in self.groups)
        return replace(self, groups=groups, notes=tuple(lettered))

    def heading_rows(self) -> Iterator[list[tuple[str, int]]]:
        """The rows of spanning headings, outermost first."""
        for level in range(max(len(column.above) for column in self.columns)):
            heading_row = []
            headings = [column.above[: level + 1] for column in self.columns]
            for above, spanned_columns in groupby(headings):
                title = above[level] if len(above) > level else ""
                heading_row.append((title, len(list(spanned_columns))))
            yield heading_row


@dataclass(frozen=True)
class Table:
    """A whole table."""

    name: str  # Its key in `pipeline.run.report.tables.TABLES`
    # The panel with the paper's test sets first, then one for each other test set; () where there
    # is nothing to show.
    panels: tuple[Panel, ...]


# Which rows a table shows.
Rows = Literal["all", "published", "measured"]


@dataclass(frozen=True)
class TableRequest:
    """Which rows and columns a table shows."""

    # Whether a column after each test set shows the difference of a measured RSUM to the published
    # one of the same system; where the table has no RSUM, of the sum of the recalls shown.
    # Differences are of the numbers as printed.
    delta: bool = False
    rows: Rows = "all"  # The published rows, the measured rows, or all
    # The metrics of each direction, e.g. R@1 or nDCG@10, and RSUM; () for those that the paper
    # prints.
    metrics: tuple[str, ...] = ()
    # Whether a column after each measured RSUM has letters: rows that share one do not differ
    # significantly.
    letters: bool = False

    @property
    def published(self) -> bool:
        """Whether published rows are shown."""
        return self.rows != "measured"

    @property
    def measured(self) -> bool:
        """Whether measured rows are shown."""
        return self.rows != "published"


def grid(
    headings: Sequence[str], groups: Mapping[str, Iterable[Sequence[str | Cell]]], texts: int = 1
) -> Panel:
    """A panel of groups of rows by their titles, whose first columns are texts and whose others are
    numbers.
    """
    columns = []
    for index, heading in enumerate(headings):
        kind: Literal["text", "number"] = "text" if index < texts else "number"
        columns.append(Column(heading, kind=kind))
    panel_groups = []
    for title, rows in groups.items():
        table_rows = []
        for row in rows:
            cells = [cell if isinstance(cell, Cell) else Cell(cell) for cell in row]
            table_rows.append(TableRow(tuple(cells)))
        panel_groups.append(RowGroup(tuple(table_rows), title))
    return Panel(tuple(columns), tuple(panel_groups))


def number(
    value: float,
    interval: Iterable[float] | None = None,
    spread: float | None = None,
    digits: int = 1,
    is_difference: bool = False,
) -> Cell:
    """The cell of a number, rounded like its interval and its standard deviation."""
    rounded_interval = None
    if interval:
        low, high = interval
        rounded_interval = (rounded(low, digits), rounded(high, digits))
    standard_deviation = None
    if spread is not None:
        standard_deviation = rounded(spread, digits)
    return Cell(
        rounded(value, digits),
        spread=standard_deviation,
        interval=rounded_interval,
        is_difference=is_difference,
    )


def from_to(ends: Sequence[int]) -> str:
    """An interval of ranks, "1–3"; "2" for one rank."""
    best, worst = ends
    if best == worst:
        return f"{best}"
    return f"{best}–{worst}"


def rounded(value: float, places: int = 1) -> Decimal:
    """Round half to even, as Python and NumPy do.

    The half is judged on the shortest decimal that reads back as the same float (what Python and
    JSON print), not on its binary expansion: 0.25 -> 0.2 and 0.35 -> 0.4, as one would round by
    hand.
    """
    shortest = Decimal(repr(float(value)))
    return shortest.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)


def to_digits(value: float, digits: int) -> Decimal:
    """Round to so many significant digits, without zeros at the end: 0.0123, 0.05, 1."""
    shortest = Decimal(repr(float(value)))
    return Context(prec=digits).create_decimal(shortest).normalize()


def significant(value: float) -> Decimal:
    """A ratio with one decimal below 100, three significant digits above: 4.9, 147, 147,000."""
    if value < 99.95:
        return rounded(value)
    whole = round(value)
    zeros = max(0, len(str(whole)) - 3)
    return Decimal(round(value, -zeros)).quantize(Decimal(1))
