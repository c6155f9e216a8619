"""Retrieval tables: a definition, and from it and the measured systems a `Table`.

The first panel has the paper's columns: its own rows, and below them, apart, what was measured here on the same test
sets. Measurements on other data follow in panels of their own, never under the paper's headings.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby

from pipeline.report import names, published
from pipeline.report.emphasis import Rule, best_of_columns, sentence
from pipeline.report.measured import MeasuredSystem, Results, outside_benchmarks
from pipeline.report.numerals import signed
from pipeline.report.published import PublishedRow
from pipeline.report.remarks import made_from, remarks
from pipeline.report.result_rows import ZERO_SHOT, ResultRow, RowHeader, measured_rows, published_rows
from pipeline.report.table import MISSING, Cell, Colour, Note, Panel, RowGroup, Table, TableRow
from pipeline.report.table_columns import MetricKey, TableColumns
from pipeline.report.table_request import TableRequest
from pipeline.report.throughput import Timing, read_timing


@dataclass(frozen=True)
class RetrievalTable:
    """The definition of a retrieval table: everything but the measured numbers.

    Attributes:
        name: Its key in `TABLES`; with published rows also the name of their file in `manifests/published`.
        caption: What it shows; `{data}` stands for the data.
        columns: Its columns.
        measured_header: The header of a measured system, None for one that the table does not show.
        published_header: The header of a published row; None for a table without published rows.
        data: The data of the paper's table, in words.
        legend: (text, sentence) pairs; the sentence joins the caption where a label or heading holds the text.
        emphasis: The rule that says which numbers are bold.
        base: The recipe that counts as 1.0× in the column of ratios, as in the paper; "" where that is not timed here.
        note: A note on the published rows, "" for none.
        zero_shot: Whether dual encoders, as they come, have rows of their own.
    """

    name: str
    caption: str
    columns: TableColumns
    measured_header: Callable[[MeasuredSystem], RowHeader | None]
    published_header: Callable[[PublishedRow], RowHeader] | None = None
    data: str = ""
    legend: tuple[tuple[str, str], ...] = ()
    emphasis: Rule = best_of_columns
    base: str = ""
    note: str = ""
    zero_shot: bool = False

    def header(self, system: MeasuredSystem) -> RowHeader | None:
        """The header of a measured system.

        Args:
            system: The system.

        Returns:
            Its header, of a dual encoder in a section of its own; None for one that the table does not show.
        """
        if not system.origin.zero_shot:
            return self.measured_header(system)
        encoder = system.members[0].encoder
        if not self.zero_shot or encoder is None:
            return None
        title = names.zero_shot(system.origin.recipe, encoder)
        return RowHeader((*[""] * (len(self.columns.labels) - 1), title), ZERO_SHOT, ZERO_SHOT)

    def build(self, results: Results, request: TableRequest) -> Table:
        """Fill the table.

        Args:
            results: What was measured.
            request: Which rows and columns are shown.

        Returns:
            The published rows and the measured systems that the table shows; without panels where there are none.

        Raises:
            InputError: If the published rows or the throughput cannot be read, or there is no such metric.
        """
        asked = replace(self, columns=self.columns.choose(request.metrics))
        printed, doubts = asked.published_rows()
        timing = read_timing(results.throughput, self.base)
        systems = [system for system in results.systems if request.measured and self.header(system)]
        here = [system for system in systems if system.origin.benchmark in dict(self.columns.blocks)]
        first = _main_panel(asked, here, printed, doubts if request.published else [], timing, request)
        others = [_other_panel(asked, members, printed, timing) for members in outside_benchmarks(systems)]
        return Table(self.name, (*[first] * bool(first.groups), *others))

    def published_rows(self) -> tuple[list[ResultRow], list[Note]]:
        """The published rows, those of one group together, and the notes on those in doubt.

        Returns:
            Both, empty for a table without published rows.

        Raises:
            InputError: If the published rows cannot be read.
        """
        if self.published_header is None:
            return [], []
        rows, doubts = published_rows(published.load(self.name), self.published_header, self.columns.shown())
        groups = list(dict.fromkeys((row.header.section, row.header.group) for row in rows))
        return sorted(rows, key=lambda row: groups.index((row.header.section, row.header.group))), doubts


def _main_panel(table: RetrievalTable, here: Sequence[MeasuredSystem], printed: Sequence[ResultRow],
                doubts: Sequence[Note], timing: Timing, request: TableRequest) -> Panel:
    columns, delta = table.columns, request.delta and bool(here)
    bases = {row.header.identity: row for row in printed if row.header.identity}
    measured = _in_order(measured_rows(here, table.header, timing), printed)
    shown = printed if request.published else []
    above = _groups(shown, table, columns, bases={} if delta else None)
    below = _groups(measured, table, columns, bases=bases if delta else None, lead="Measured here" if shown else "")
    noted = [Note(table.note)] if table.note and shown else []
    notes = (*_about_bold(doubts, above), *noted, *remarks(here, columns, timing, delta))
    return Panel(columns.columns(delta), (*above, *below), _caption(table, table.data, shown, measured), notes,
                 made_from=made_from(here, timing))


def _caption(table: RetrievalTable, data: str, printed: Sequence[ResultRow], measured: Sequence[ResultRow]) -> str:
    """The caption, with sentences on those rows alone that are shown."""
    rows = [*printed, *measured]
    words = [*table.columns.labels, table.columns.ratio, *["RSUM"] * table.columns.rsum]
    words += [text for row in rows for text in (row.header.section, *row.header.labels)]
    sentences = [table.caption.format(data=data)]
    sentences += [sentence for text, sentence in table.legend if any(text in word for word in words)]
    return " ".join(filter(None, (*sentences, sentence(table.emphasis, rows, bool(printed) and bool(measured)))))


def _about_bold(doubts: Sequence[Note], groups: Sequence[RowGroup]) -> list[Note]:
    """The notes on cells in doubt; where such a cell is bold, its note says why."""
    cells = (cell for group in groups for row in group.rows for cell in row.cells)
    bold = {mark for cell in cells if cell.bold for mark in cell.marks}
    return [replace(note, text=f"{note.text} Bold follows the cell as printed.") if note.mark in bold else note
            for note in doubts]


def _other_panel(table: RetrievalTable, systems: Sequence[MeasuredSystem], printed: Sequence[ResultRow],
                 timing: Timing) -> Panel:
    origin = systems[0].origin
    data = (f"{names.DATASETS.get(origin.dataset, origin.dataset)} ({origin.split} split, {origin.images:,} images, "
            f"{origin.captions:,} captions)")
    columns = replace(table.columns, blocks=((data, ""),))
    measured = _in_order(measured_rows(systems, table.header, timing, test_set=data), printed)
    notes = remarks(systems, columns, timing, delta=False)
    return Panel(columns.columns(delta=False), tuple(_groups(measured, table, columns, bases=None)),
                 _caption(table, data, (), measured), notes, origin.dataset, made_from(systems, timing))


def _in_order(measured: Sequence[ResultRow], printed: Sequence[ResultRow]) -> list[ResultRow]:
    """Sort measured rows by the paper's sections, groups and systems.

    Rows that the paper lacks come last, in the order measured.
    """
    ranks: dict[Hashable, int] = {}
    for row in (*printed, *measured):
        for part in _parts(row.header):
            ranks.setdefault(part, len(ranks))
    return sorted(measured, key=lambda row: [ranks[part] for part in _parts(row.header)])


def _parts(header: RowHeader) -> tuple[Hashable, ...]:
    return ("section", header.section), ("group", header.group), ("identity", header.identity)


def _groups(rows: Sequence[ResultRow], table: RetrievalTable, columns: TableColumns,
            bases: Mapping[Hashable, ResultRow] | None, lead: str = "") -> list[RowGroup]:
    """Rows in sections and groups. bases: identity -> published row, for a column of differences; None for none."""
    bold = table.emphasis(rows, columns.numbers())
    groups, before = [], None
    indices = groupby(range(len(rows)), key=lambda index: (rows[index].header.section, rows[index].header.group))
    for (section, _), members in indices:
        found = []
        for index in members:
            colours = {column.key: bold.get((index, column.key)) for column in columns.numbers()}
            found.append(TableRow(_cells(rows[index], columns, colours, bases), rows[index].sources))
        title = ": ".join(filter(None, (lead, section))) if section != before else ""
        groups.append(RowGroup(tuple(found), title))
        before = section
    return groups


def _cells(row: ResultRow, columns: TableColumns, colours: Mapping[MetricKey, Colour | None],
           bases: Mapping[Hashable, ResultRow] | None) -> tuple[Cell, ...]:
    *labels, last = row.header.labels
    cells = [*map(Cell, labels), Cell(last, marks=row.marks)]
    for test_set, _ in columns.blocks:
        cells += [_cell(row, (test_set, name), colours[test_set, name]) for name in columns.shown()]
        if bases is not None:
            base = None if row.marks else bases.get(row.header.identity)  # on stand-ins it is not the same system
            cells.append(Cell(_difference(row, base, test_set, columns)))
    return (*cells, *[Cell(row.ratio or MISSING)] * bool(columns.ratio))


def _cell(row: ResultRow, key: MetricKey, bold: Colour | None) -> Cell:
    number = row.numbers.get(key)
    if number is None or number.value is None:
        return Cell(MISSING, marks=number.marks if number else ())
    return Cell(str(number.value), "" if number.spread is None else str(number.spread), bold, number.marks)


def _difference(row: ResultRow, base: ResultRow | None, test_set: str, columns: TableColumns) -> str:
    if base is None:
        return ""
    here, there = _sum(row, test_set, columns), _sum(base, test_set, columns)
    return "" if here is None or there is None else signed(here - there)


def _sum(row: ResultRow, test_set: str, columns: TableColumns) -> Decimal | None:
    summed = columns.summed()
    values = [number.value for name in summed if (number := row.numbers.get((test_set, name)))]
    known = [value for value in values if value is not None]
    return sum(known, Decimal()) if len(known) == len(summed) else None
