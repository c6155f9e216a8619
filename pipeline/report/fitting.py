"""How a table is fitted into a two-column page: which float, which size of type, where it is split.

A float spans one column of the page or both. A panel takes the narrower float in which it fits with
type of 9 or 8 points; if it fits in neither, the one in which it fits with 7 points. Columns move
closer before type becomes smaller than 8 points. If a panel does not fit at all, its test sets are
below each other as sections of one float; if these are still too wide, so do their directions
(image retrieval, caption retrieval). If these have different columns, or take more than a page,
each is a float of its own, without the rows that have no number in it. A panel without such parts
has its text broken into lines. A panel taller than the page continues in another float. Nothing is
scaled, unless the document's columns are narrower than the given ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any, Literal

from pipeline.evaluation.metrics import Statistic
from pipeline.files.parsing import from_yaml
from pipeline.report.table import MISSING, Cell, Panel, RowGroup, TableRow

# How rules and characters are set, and how wide letters are.
SETTING: dict[str, Any] = from_yaml(
    Path(__file__).with_name("latex.yaml").read_text(encoding="utf-8")
)
TextFont = Literal["times", "computer modern"]
# A centimetre in points.
CENTIMETRE = 72.27 / 2.54
# Size in points -> the width of Computer Modern's letters relative to their size, as a multiple of
# that at 10 points.
SMALL = {9.0: 1.03, 8.0: 1.06, 7.0: 1.14}


@dataclass(frozen=True)
class Paper:
    """The two-column paper that tables go into, in points (72.27 an inch)."""

    column: float  # the width of a column of text
    text: float  # the width of both
    height: float  # the height of the text
    font: TextFont = "times"  # its font, which decides how wide numbers are

    def stretch(self, size: float) -> float:
        """How much wider than `width` says its font is at a size."""
        return SMALL.get(size, 1.0) if self.font == "computer modern" else 1.0

    @classmethod
    def of_centimetres(
        cls, column: float, text: float, height: float, font: TextFont = "times"
    ) -> "Paper":
        """A paper measured in centimetres."""
        return cls(column * CENTIMETRE, text * CENTIMETRE, height * CENTIMETRE, font)


# acl.sty on A4, but of CVPR's height: the columns of the one are narrower, the pages of the other
# are lower.
ACL = Paper.of_centimetres(7.7, 16.0, 22.5)


# Any other letter: it may be printed as its code point, [U+4E2D].
OTHER = 3.5
# How much wider bold is: Computer Modern's digits.
BOLD = 1.15

_WIDTHS = {
    letter: float(width) for width, letters in SETTING["widths"].items() for letter in letters
}


def width(text: str, bold: bool = False) -> float:
    """Estimate the width of a line of text in em, the size of the type; it is rather too large than
    too small.
    """
    return sum(_WIDTHS.get(letter, OTHER) for letter in text) * (BOLD if bold else 1.0)


# The least size of type in points: of tables, footnotes and deviations.
LEAST = 7.0
# Points between two columns: at least, wanted, and at most where there is room.
GAPS = (3.0, 6.0, 10.0)
# Points: the least width of a column whose text is broken into lines.
NARROWEST = 50.0


@dataclass(frozen=True)
class FittedColumn:
    """How a column is set."""

    width: float  # Its width in points
    whole: int = 0  # The most digits before the decimal point
    decimals: int = 0  # The most digits after it
    signed: bool = False  # Whether a number has a sign
    followed: bool = False  # Whether a number is followed by ± or ×
    # Whether its width must be set: a heading above is wider than its columns, or text is broken
    # into lines.
    fixed: bool = False


def measure(panel: Panel, size: float, stretch: float = 1.0) -> tuple[FittedColumn, ...]:
    """Estimate the widths of a panel's columns at a size of type; stretch: how much wider the
    paper's font is.
    """
    size *= stretch
    cells = list(zip(*(row.cells for group in panel.groups for row in group.rows), strict=True))
    columns = []
    for number, column in enumerate(panel.columns):
        body = cells[number] if cells else ()
        heading = width(column.heading) * size
        text = max(
            (
                width(cell.text, bool(cell.bold)) * size + width("".join(cell.marks)) * LEAST
                for cell in body
            ),
            default=0.0,
        )
        columns.append(
            FittedColumn(max(heading, text))
            if column.kind == "text"
            else _numbers(body, heading, size)
        )
    return tuple(_widened(panel, columns, size))


def _numbers(cells: Sequence[Cell], heading: float, size: float) -> FittedColumn:
    numbers = [(cell, cell.number) for cell in cells if cell.number is not None]
    whole = max((len(str(abs(int(number)))) for _, number in numbers), default=1)
    decimals = max((decimal_places(number) for _, number in numbers), default=0)
    signed = any(number < 0 or (number > 0 and cell.is_difference) for cell, number in numbers)
    digits = "0" * whole + "," * ((whole - 1) // 3)
    if signed:
        digits = f"−{digits}"
    if decimals:
        digits += "." + "0" * decimals
    widest = max((width(digits, bool(cell.bold)) for cell, _ in numbers), default=0.0) * size
    after = max(
        (
            width(cell.after) * LEAST if cell.after else width("×" if cell.is_factor else "") * size
            for cell, _ in numbers
        ),
        default=0.0,
    )
    return FittedColumn(max(heading, widest + after), whole, decimals, signed, after > 0)


def decimal_places(number: Decimal) -> int:
    """Count the digits after the point."""
    return max(0, -int(number.as_tuple().exponent))


def _widened(panel: Panel, columns: list[FittedColumn], size: float) -> list[FittedColumn]:
    """Columns under a heading that is wider than all of them share what is lacking."""
    for spans in panel.heading_rows():
        first = 0
        for title, count in spans:
            under = columns[first : first + count]
            if title and width(title) * size > total(under):
                share = (width(title) * size - GAPS[0] * (count - 1)) / count
                columns[first : first + count] = [
                    replace(column, width=max(column.width, share), fixed=True) for column in under
                ]
            first += count
    return columns


def total(columns: Sequence[FittedColumn], gap: float = GAPS[1]) -> float:
    """The width of a table in points, with a gap between two columns."""
    return sum(column.width for column in columns) + gap * (len(columns) - 1)


def broken(
    panel: Panel, columns: Sequence[FittedColumn], available: float
) -> tuple[FittedColumn, ...]:
    """Narrow the columns with the widest texts until all fit; their text is broken into lines."""
    narrowed = list(columns)
    texts = [index for index, column in enumerate(panel.columns) if column.kind == "text"]
    for index in sorted(texts, key=lambda index: -narrowed[index].width):
        lacking = total(narrowed) - available
        if lacking > 0:
            narrower = min(narrowed[index].width, max(NARROWEST, narrowed[index].width - lacking))
            narrowed[index] = replace(narrowed[index], width=narrower, fixed=True)
    return tuple(narrowed)


# Sizes of type in points with the least space between columns, the preferred one first.
READABLE = ((9.0, GAPS[1]), (8.0, GAPS[1]), (8.0, GAPS[0]))
# The layout of tables which are too wide for `READABLE`.
SMALLEST = ((LEAST, GAPS[1]),)
# Points: the size of captions, which the document sets.
CAPTION = 11.0
# Spaces between columns grow to this part of the width.
FILLED = 0.98


@dataclass(frozen=True)
class Part:
    """A float."""

    panel: Panel  # its rows and columns
    columns: tuple[FittedColumn, ...]  # how its columns are set
    size: float  # the size of type in points
    wide: bool  # whether it spans both columns of the page
    available: float  # the width of the float in points

    @property
    def gap(self) -> float:
        """The space between two columns in points."""
        spare = (FILLED * self.available - total(self.columns, 0.0)) / max(1, len(self.columns) - 1)
        return min(GAPS[-1], max(GAPS[0], spare))

    @property
    def width(self) -> float:
        """The width of the table in points."""
        return total(self.columns, self.gap)


def fit(panel: Panel, paper: Paper) -> list[Part]:
    """Fit a panel into a paper by the rule above: one float, or several where it is split."""
    panel = stacked(panel, paper)
    if whole := _whole(panel, paper):
        return whole
    if len(blocks := _blocks(panel)) > 1:
        parts = (
            _part(panel, numbers, f"Part {number} of {len(blocks)}: {heading}.", number)
            for number, (heading, numbers) in enumerate(blocks.items(), start=1)
        )
        return [fitted for part in parts for fitted in fit(part, paper)]
    columns = broken(panel, measure(panel, LEAST, paper.stretch(LEAST)), paper.text)
    return [
        Part(each, columns, LEAST, True, paper.text)
        for each in _pages(panel, LEAST, paper.text, paper)
    ]


def stacked(panel: Panel, paper: Paper) -> Panel:
    """The panel; if it is too wide for the paper, with its test sets below each other, if this fits
    into one float.
    """
    blocks = _blocks(panel)
    if len(blocks) < 2 or _whole(panel, paper) or not (below := _stacked(panel, blocks)):
        return panel
    below = stacked(below, paper)
    return below if len(fit(below, paper)) == 1 else panel


def _whole(panel: Panel, paper: Paper) -> list[Part]:
    """The panel in floats of the narrowest width and largest type in which its columns fit; [] if
    they fit in none.
    """
    for sizes, (wide, available) in product(
        (READABLE, SMALLEST), ((False, paper.column), (True, paper.text))
    ):
        for size, gap in sizes:
            columns = measure(panel, size, paper.stretch(size))
            if total(columns, gap) <= available:
                return [
                    Part(each, columns, size, wide, available)
                    for each in _pages(panel, size, available, paper)
                ]
    return []


def _blocks(panel: Panel) -> dict[str, list[int]]:
    """The outermost headings that differ, with their columns of numbers; columns without one go
    with the last.
    """
    numbers = [index for index, column in enumerate(panel.columns) if column.kind == "number"]
    for level in range(max(len(column.above) for column in panel.columns)):
        above = {
            index: panel.columns[index].above[level]
            for index in numbers
            if len(panel.columns[index].above) > level
        }
        headings = list(dict.fromkeys(filter(None, above.values())))
        if len(headings) > 1:
            return {
                heading: [index for index in numbers if above.get(index, headings[-1]) == heading]
                for heading in headings
            }
    return {}


# Joins the caption of what is stacked.
APART = " Sections do not compete."


def _stacked(panel: Panel, blocks: dict[str, list[int]]) -> Panel | None:
    """The blocks below each other, sections of one panel; None where their columns differ."""
    labels = [index for index, column in enumerate(panel.columns) if column.kind == "text"]
    columns = [
        tuple(
            replace(
                panel.columns[index],
                key=("", Statistic("", "")),
                above=tuple(each for each in panel.columns[index].above if each != heading),
            )
            for index in [*labels, *numbers]
        )
        for heading, numbers in blocks.items()
    ]
    if len(set(columns)) > 1:
        return None
    groups = []
    for heading, numbers in blocks.items():
        for place, group in enumerate(_groups(panel, [*labels, *numbers], numbers)):
            title = (
                ": ".join(filter(None, (heading, group.title))) if group.title or place == 0 else ""
            )
            groups.append(replace(group, title=title))
    caption = panel.caption.removesuffix(APART) + APART
    return replace(
        panel,
        columns=columns[0],
        groups=tuple(groups),
        caption=caption,
        notes=tuple(replace(note, test_set="") for note in panel.notes),
    )


def _groups(panel: Panel, shown: Sequence[int], numbers: Sequence[int]) -> Iterator[RowGroup]:
    """The groups of rows of these columns, without rows that have no number in `numbers`."""
    for group in panel.groups:
        if rows := tuple(
            TableRow(tuple(row.cells[index] for index in shown), row.sources)
            for row in group.rows
            if any(row.cells[index].content not in ("", MISSING) for index in numbers)
        ):
            yield RowGroup(rows, group.title)


def _part(panel: Panel, block: Sequence[int], caption: str, number: int) -> Panel:
    """The labels and these columns of numbers."""
    shown = [
        *(index for index, column in enumerate(panel.columns) if column.kind == "text"),
        *block,
    ]
    key = "-".join(filter(None, (panel.key, str(number))))
    return replace(
        panel,
        columns=tuple(panel.columns[index] for index in shown),
        groups=tuple(_groups(panel, shown, block)),
        caption=f"{panel.caption} {caption}",
        key=key,
    ).lettered()


def _pages(panel: Panel, size: float, available: float, paper: Paper) -> Iterator[Panel]:
    """The panel, or its groups of rows on as many pages as they need."""
    caption = CAPTION * (2 + width(panel.caption + panel.colours) * CAPTION / available)
    notes = sum(LEAST * 1.2 * (1 + width(note.text) * LEAST // available) for note in panel.notes)
    lines = (
        (paper.height - caption - notes) / (1.2 * size) - 3 * len(list(panel.heading_rows())) - 3
    )
    pages: list[list[RowGroup]] = [[]]
    section, taken = "", 0.0
    for group in panel.groups:
        section, needed = group.title or section, len(group.rows) + (2.0 if group.title else 0.5)
        if pages[-1] and taken + needed > lines:
            pages.append([])
            group, taken = replace(group, title=section), 0.0
        pages[-1].append(group)
        taken += needed
    for number, groups in enumerate(pages, start=1):
        more = f" Page {number} of {len(pages)}." if len(pages) > 1 else ""
        key = "-".join(filter(None, (panel.key, f"page{number}" if number > 1 else "")))
        yield replace(panel, groups=tuple(groups), caption=panel.caption + more, key=key).lettered()
