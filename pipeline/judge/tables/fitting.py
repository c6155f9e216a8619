"""How a table is fitted into a two-column page: which float, which size of type, where it is split.

A float spans one column of the page or both. A panel takes the narrower float in which it fits with
type of 9 or 8 points. If it fits in neither, its test sets stand below each other as sections of
one float; if these are still too wide, so do their directions (image retrieval, caption retrieval).
If these have different columns, or take more than a page, the panel takes the float in which it
fits with 7 points; if there is none, each test set is a float of its own, without the rows that
have no number in it. A panel taller than the page continues in another float.

Widths are counted in characters, each half as wide as the type is high. LaTeX alone knows how wide
they are: what is wider than it was counted to be is scaled down by the package adjustbox.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pipeline.foundation.evaluation.metrics import Statistic
from pipeline.judge.tables.table import MISSING, Panel, RowGroup, TableRow

# A centimetre in points.
CENTIMETRE = 72.27 / 2.54
# Points: sizes of type, the preferred one first; and the one for panels that fit in none of them.
READABLE = (9.0, 8.0)
LEAST = 7.0
# Points: the size of captions, which the document sets.
CAPTION = 11.0
# Points from line to line, as a multiple of the size of type.
LEADING = 1.2
# Points between two columns.
GAP = 4.0
# Characters: a longer text is broken into lines where a panel is too wide.
LONGEST_LINE = 40


@dataclass(frozen=True)
class Paper:
    """The two-column paper that tables go into, in centimetres."""

    column: float  # the width of a column of text
    text: float  # the width of both
    height: float  # the height of the text


# acl.sty on A4, but of CVPR's height: the columns of the one are narrower, the pages of the other
# are lower.
ACL = Paper(7.7, 16.0, 22.5)


@dataclass(frozen=True)
class Part:
    """A float."""

    panel: Panel  # its rows and columns
    size: float  # the size of type in points
    wide: bool  # whether it spans both columns of the page
    is_broken: bool = False  # whether long texts are broken into lines

    @property
    def characters(self) -> float:
        """The width of its table in characters."""
        if self.is_broken:
            return characters(self.panel, self.size, LONGEST_LINE)
        return characters(self.panel, self.size)


def characters(panel: Panel, size: float, longest: int | None = None) -> float:
    """Count the characters of a panel's widest line, with the gaps between columns.

    longest: the most of a text that is broken into lines.
    """
    widths: list[float] = []
    for index, column in enumerate(panel.columns):
        widest = len(column.heading)
        for group in panel.groups:
            for row in group.rows:
                cell = row.cells[index]
                cell_width = len(str(cell)) + sum(map(len, cell.marks))
                widest = max(widest, cell_width)
        if longest and column.kind == "text":
            widest = min(widest, longest)
        widths.append(widest)
    gap = GAP / _character(size)
    for spans in panel.heading_rows():
        first_column = 0
        for title, spanned in spans:
            width_below = sum(widths[first_column : first_column + spanned]) + gap * (spanned - 1)
            if title:
                widths[first_column] += max(0.0, len(title) - width_below)
            first_column += spanned
    return sum(widths) + gap * (len(widths) - 1)


def _character(size: float) -> float:
    """The width of a character in points."""
    return size / 2


def fit(panel: Panel, paper: Paper) -> list[Part]:
    """Fit a panel into a paper by the rule above: one float, or several where it is split."""
    panel = stacked(panel, paper)
    whole = _whole(panel, paper, READABLE) or _whole(panel, paper, (LEAST,))
    if whole:
        return whole
    blocks = _blocks(panel)
    if len(blocks) < 2:
        pages = _pages(panel, LEAST, paper.text, paper)
        return [Part(page, LEAST, wide=True, is_broken=True) for page in pages]
    floats: list[Part] = []
    for number, (heading, numbers) in enumerate(blocks.items(), start=1):
        caption = f"Part {number} of {len(blocks)}: {heading}."
        floats += fit(_part(panel, numbers, caption, number), paper)
    return floats


def stacked(panel: Panel, paper: Paper) -> Panel:
    """The panel; if it is too wide for the paper, with its test sets below each other, if this fits
    into one float.
    """
    blocks = _blocks(panel)
    if len(blocks) < 2 or _whole(panel, paper, READABLE):
        return panel
    stacked_panel = _stacked(panel, blocks)
    if stacked_panel is None:
        return panel
    stacked_panel = stacked(stacked_panel, paper)
    if len(fit(stacked_panel, paper)) > 1:
        return panel
    return stacked_panel


def _whole(panel: Panel, paper: Paper, sizes: Sequence[float]) -> list[Part]:
    """The panel in floats of the narrowest width and largest of these sizes in which its columns
    fit; [] if they fit in none.
    """
    for wide, available in ((False, paper.column), (True, paper.text)):
        for size in sizes:
            if characters(panel, size) <= _available(available, size):
                pages = _pages(panel, size, available, paper)
                return [Part(page, size, wide) for page in pages]
    return []


def _available(centimetres: float, size: float) -> float:
    """How many characters of a size stand in a line."""
    return centimetres * CENTIMETRE / _character(size)


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
            blocks: dict[str, list[int]] = {heading: [] for heading in headings}
            for index in numbers:
                blocks[above.get(index, headings[-1])].append(index)
            return blocks
    return {}


# Joins the caption of what is stacked.
APART = " Sections do not compete."


def _stacked(panel: Panel, blocks: dict[str, list[int]]) -> Panel | None:
    """The blocks below each other, sections of one panel; None where their columns differ."""
    labels = [index for index, column in enumerate(panel.columns) if column.kind == "text"]
    layouts = set()
    groups: list[RowGroup] = []
    for heading, numbers in blocks.items():
        shown = [*labels, *numbers]
        columns = []
        for index in shown:
            column = panel.columns[index]
            above = tuple(title for title in column.above if title != heading)
            columns.append(replace(column, key=("", Statistic("", "")), above=above))
        layouts.add(tuple(columns))
        title = heading
        for group in _groups(panel, shown, numbers):
            if group.title:
                title = f"{heading}: {group.title}"
            groups.append(replace(group, title=title))
            title = ""
    if len(layouts) > 1:
        return None
    return replace(
        panel,
        columns=layouts.pop(),
        groups=tuple(groups),
        caption=panel.caption.removesuffix(APART) + APART,
        notes=tuple(replace(note, test_set="") for note in panel.notes),
    )


def _groups(panel: Panel, shown: Sequence[int], numbers: Sequence[int]) -> Iterator[RowGroup]:
    """The groups of rows of these columns, without rows that have no number in `numbers`."""
    for group in panel.groups:
        rows = []
        for row in group.rows:
            if any(row.cells[index].content not in ("", MISSING) for index in numbers):
                rows.append(TableRow(tuple(row.cells[index] for index in shown), row.sources))
        if rows:
            yield RowGroup(tuple(rows), group.title)


def _part(panel: Panel, block: Sequence[int], caption: str, number: int) -> Panel:
    """The labels and these columns of numbers."""
    labels = [index for index, column in enumerate(panel.columns) if column.kind == "text"]
    shown = [*labels, *block]
    part = replace(
        panel,
        columns=tuple(panel.columns[index] for index in shown),
        groups=tuple(_groups(panel, shown, block)),
        caption=f"{panel.caption} {caption}",
        key=f"{panel.key}-{number}".lstrip("-"),
    )
    return part.lettered()


def _pages(panel: Panel, size: float, available: float, paper: Paper) -> Iterator[Panel]:
    """The panel, or its groups of rows on as many pages as they need."""
    caption = 2 + len(panel.caption + panel.colours) / _available(available, CAPTION)
    notes = 0.0
    for note in panel.notes:
        notes += 1 + len(note.text) // _available(available, LEAST)
    headings = 3 * len(list(panel.heading_rows())) + 3
    height_of_rows = paper.height * CENTIMETRE - caption * CAPTION - notes * LEADING * LEAST
    lines_that_fit = height_of_rows / (LEADING * size) - headings

    pages: list[list[RowGroup]] = [[]]
    section = ""
    lines_of_page = 0.0
    for group in panel.groups:
        section = group.title or section
        lines_of_group = len(group.rows) + 0.5
        if group.title:
            lines_of_group = len(group.rows) + 2.0
        if pages[-1] and lines_of_page + lines_of_group > lines_that_fit:
            pages.append([])
            lines_of_page = 0.0
            group = replace(group, title=section)
        pages[-1].append(group)
        lines_of_page += lines_of_group
    for number, groups in enumerate(pages, start=1):
        page_sentence = ""
        key = panel.key
        if len(pages) > 1:
            page_sentence = f" Page {number} of {len(pages)}."
        if number > 1:
            key = f"{panel.key}-page{number}".lstrip("-")
        page = replace(panel, groups=tuple(groups), caption=panel.caption + page_sentence, key=key)
        yield page.lettered()
