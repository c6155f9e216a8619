"""Tables of results: a definition of rows, columns and sources, and from it and what was measured a `Table`.

The first panel has the paper's columns: its own rows, and below them, apart, what was measured here on the same test
sets. Measurements on other data follow in panels of their own, never under the paper's headings.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from pipeline.report import names, published
from pipeline.report.emphasis import Rule, best_of_columns, sentence, without_lone
from pipeline.report.measured import MeasuredSystem, Results, outside_benchmarks
from pipeline.report.published import PublishedRow
from pipeline.report.remarks import made_from, remarks
from pipeline.report.result_rows import ZERO_SHOT, ResultRow, RowHeader, measured_rows, published_rows
from pipeline.report.table import (
    MISSING,
    Cell,
    Colour,
    Note,
    Panel,
    RowGroup,
    Table,
    TableRequest,
    TableRow,
    rounded,
    signed,
)
from pipeline.report.table_columns import MetricKey, TableColumns
from pipeline.report.throughput import Timing, read_timing

Bases = Mapping[Hashable, ResultRow]
"""Identity -> published row, which measured rows are compared with."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What every table of results has; a panel is laid out from rows.

    Attributes:
        name: Its key in `TABLES`; with published rows also the name of their file in `manifests/published`.
        caption: What it shows; `{data}` stands for the data.
        columns: Its columns.
        data: The data of the paper's table, in words.
        legend: (text, sentence) pairs; the sentence joins the caption where a label or heading holds the text.
        emphasis: The rule that says which numbers are bold.
        notes: Notes on the published rows.
    """

    name: str
    caption: str
    columns: TableColumns
    data: str = ""
    legend: tuple[tuple[str, str], ...] = ()
    emphasis: Rule = best_of_columns
    notes: tuple[Note, ...] = ()

    def panel(self, printed: Sequence[ResultRow], measured: Sequence[ResultRow], doubts: Sequence[Note] = (),
              notes: Sequence[Note] = (), bases: Bases | None = None, made_from: tuple[str, ...] = ()) -> Panel:
        """Lay out published rows and, apart, measured ones."""
        above = self._groups(printed, self.emphasis, {} if bases is not None else None)
        below = self._groups(measured, without_lone(self.emphasis), bases, "Measured here" if printed else "")
        bold = {mark for group in above for row in group.rows for cell in row.cells if cell.bold for mark in cell.marks}
        said = [replace(note, text=f"{note.text} Bold follows the cell as printed.") if note.mark in bold else note
                for note in doubts]
        under = (*said, *(self.notes if printed else ()), *notes)
        return Panel(self.columns.columns(bases is not None), (*above, *below), self._said(printed, measured), under,
                     made_from=made_from)

    def _said(self, printed: Sequence[ResultRow], measured: Sequence[ResultRow]) -> str:
        """The caption, with sentences on those rows alone that are shown."""
        rows = [*printed, *measured]
        words = [*self.columns.labels, self.columns.ratio, *["RSUM"] * self.columns.rsum]
        words += [text for row in rows for text in (row.header.section, *row.header.labels)]
        sentences = [self.caption.format(data=self.data)]
        sentences += [sentence for text, sentence in self.legend if any(text in word for word in words)]
        numbers = self.columns.numbers()
        bold = [shown[index] for shown, rule in ((printed, self.emphasis), (measured, without_lone(self.emphasis)))
                for index, _ in rule(shown, numbers)]
        if bold:
            sentences.append(sentence(self.emphasis, bold, numbers, bool(printed) and bool(measured)))
        return " ".join(filter(None, sentences))

    def _groups(self, rows: Sequence[ResultRow], rule: Rule, bases: Bases | None, lead: str = "") -> list[RowGroup]:
        """Rows in sections and groups."""
        bold = rule(rows, self.columns.numbers())
        groups, before = [], None
        indices = groupby(range(len(rows)), key=lambda index: (rows[index].header.section, rows[index].header.group))
        for (section, _), members in indices:
            found = []
            for index in members:
                colours = {column.key: bold.get((index, column.key)) for column in self.columns.numbers()}
                found.append(TableRow(tuple(self._cells(rows[index], colours, bases)), rows[index].sources))
            title = ": ".join(filter(None, (lead, section))) if section != before else ""
            groups.append(RowGroup(tuple(found), title))
            before = section
        return groups

    def _cells(self, row: ResultRow, colours: Mapping[MetricKey, Colour | None], bases: Bases | None) -> Iterator[Cell]:
        for index, label in enumerate(row.header.labels):
            yield Cell(label, marks=row.marks if index == self.columns.marked else ())
        base = None if row.marks or bases is None else bases.get(row.header.identity)  # a stand-in is another system
        for test_set, _ in self.columns.blocks:
            for name in self.columns.shown():
                yield _cell(row, (test_set, name), colours[test_set, name])
            if bases is not None:
                yield Cell("" if base is None else self._difference(row, base, test_set))
        if self.columns.ratio:
            yield Cell(row.ratio or MISSING)

    def _difference(self, row: ResultRow, base: ResultRow, test_set: str) -> str:
        """Measured minus published, of the numbers as printed; "" where one is missing."""
        pairs = [(row.numbers.get((test_set, name)), base.numbers.get((test_set, name)))
                 for name in self.columns.compared()]
        known = [(here.value, there.value) for here, there in pairs if here and there]
        found = [here - there for here, there in known if here is not None and there is not None]
        if not found or len(found) < len(pairs):
            return ""
        total = sum(found[1:], found[0])
        return signed(rounded(float(total / len(found)), places=3) if self.columns.by_mean else total)


def _cell(row: ResultRow, key: MetricKey, bold: Colour | None) -> Cell:
    number = row.numbers.get(key)
    if number is None or (number.value is None and not number.text):
        return Cell(MISSING, marks=number.marks if number else ())
    spread = "" if number.spread is None else str(number.spread)
    return Cell(number.text or str(number.value), spread, bold, number.marks)


def evaluated(results: Results) -> Sequence[MeasuredSystem]:
    """The systems of results/metrics.json, which most tables show."""
    return results.systems


@dataclass(frozen=True, kw_only=True)
class RetrievalTable(Layout):
    """The definition of a retrieval table: everything but the measured numbers.

    Attributes:
        measured: The header of a measured system, None for one that the table does not show.
        published: The header of a published row; None for a table without published rows.
        source: The systems that the table is made from.
        elsewhere: The columns on other data than the paper's, from the first system that was measured there; None for
            a table that shows no other data, because another one of the paper has the same rows.
        base: The recipe that counts as 1.0× in the column of ratios, as in the paper; "" where that is not timed here.
        zero_shot: Whether dual encoders, as they come, have rows of their own.
    """

    measured: Callable[[MeasuredSystem], RowHeader | None]
    published: Callable[[PublishedRow], RowHeader] | None = None
    source: Callable[[Results], Iterable[MeasuredSystem]] = evaluated
    elsewhere: Callable[[TableColumns, MeasuredSystem], TableColumns] | None = lambda columns, system: columns
    base: str = ""
    zero_shot: bool = False

    def header(self, system: MeasuredSystem) -> RowHeader | None:
        """The header of a measured system, of a dual encoder in a section of its own; None for one not shown."""
        if not system.origin.zero_shot:
            return self.measured(system)
        encoder = system.members[0].encoder
        if not self.zero_shot or encoder is None:
            return None
        title = names.zero_shot(system.origin.recipe, encoder)
        return RowHeader((*[""] * (len(self.columns.labels) - 1), title), ZERO_SHOT, ZERO_SHOT)

    def build(self, results: Results, request: TableRequest) -> Table:
        """Fill the table."""
        asked = replace(self, columns=self.columns.choose(request.metrics))
        printed, doubts = asked.published_rows()
        timing = read_timing(results.throughput, self.base)
        systems = [system for system in self.source(results) if request.measured and self.header(system)]
        here = [system for system in systems if system.origin.benchmark in dict(self.columns.blocks)]
        delta = request.delta and bool(here) and bool(asked.columns.compared())
        bases = {row.header.identity: row for row in printed if row.header.identity}
        shown, doubted = (printed, doubts) if request.published else ([], [])
        first = asked.panel(shown, _in_order(measured_rows(here, self.header, timing), printed), doubted,
                            remarks(here, asked.columns, timing, delta), bases if delta else None,
                            made_from(here, timing))
        outside = outside_benchmarks(systems) if self.elsewhere else []
        others = [asked._other_panel(members, printed, timing) for members in outside]
        return Table(self.name, (*[first] * bool(first.groups), *others))

    def published_rows(self) -> tuple[list[ResultRow], list[Note]]:
        """The published rows, those of one group together, and the notes on those in doubt; both may be empty."""
        if self.published is None:
            return [], []
        rows, doubts = published_rows(published.load(self.name), self.published, self.columns.shown())
        groups = list(dict.fromkeys((row.header.section, row.header.group) for row in rows))
        return sorted(rows, key=lambda row: groups.index((row.header.section, row.header.group))), doubts

    def _other_panel(self, systems: Sequence[MeasuredSystem], printed: Sequence[ResultRow], timing: Timing) -> Panel:
        origin = systems[0].origin
        data = (f"{names.DATASETS.get(origin.dataset, origin.dataset)} ({origin.split} split, {origin.images:,} "
                f"images, {origin.captions:,} captions)")
        assert self.elsewhere is not None
        columns = replace(self.elsewhere(self.columns, systems[0]), blocks=((data, ""),))
        rows = _in_order(measured_rows(systems, self.header, timing, test_set=data), printed)
        panel = replace(self, columns=columns, data=data).panel(
            (), rows, notes=remarks(systems, columns, timing, delta=False), made_from=made_from(systems, timing))
        return replace(panel, key=origin.dataset)


def _in_order(measured: Sequence[ResultRow], printed: Sequence[ResultRow]) -> list[ResultRow]:
    """Sort measured rows by the paper's sections, groups and systems; those that it lacks come last, as measured."""
    ranks: dict[Hashable, int] = {}
    for row in (*printed, *measured):
        for part in _parts(row.header):
            ranks.setdefault(part, len(ranks))
    return sorted(measured, key=lambda row: [ranks[part] for part in _parts(row.header)])


def _parts(header: RowHeader) -> tuple[Hashable, ...]:
    return ("section", header.section), ("group", header.group), ("identity", header.identity)
