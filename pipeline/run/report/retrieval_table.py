"""Tables of results: the definition of rows, columns and sources, from which a `Table` of measured
numbers is made.

The first panel has the paper's columns: the published rows, and below them, apart, those measured
here on the same test sets. Measurements on other data follow in panels of their own, never under
the paper's headings.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import Any, Self

from pydantic import ConfigDict, TypeAdapter

from pipeline.foundation.evaluation import statistics
from pipeline.foundation.evaluation.metrics import RSUM, Statistic, parse
from pipeline.foundation.files.parsing import from_yaml
from pipeline.judge.systems.scores.made import GIVEN
from pipeline.judge.tables import published, table
from pipeline.judge.tables.bold import Emphasis
from pipeline.judge.tables.published import RECALLS, PublishedRow
from pipeline.judge.tables.table import (
    MISSING,
    Cell,
    Column,
    MetricKey,
    Note,
    Panel,
    RowGroup,
    Table,
    TableRequest,
)
from pipeline.run.report import emphasis, names, result_rows, throughput
from pipeline.run.report.emphasis import Rule, best_of_columns
from pipeline.run.report.measured import MeasuredSystem, Origin, Results, outside_benchmarks
from pipeline.run.report.result_rows import DELTA, LETTERS, RATIO, Measured, ResultRow, RowHeader

# What manifests/published/tables.yaml says of each table.
LISTED: dict[str, dict[str, Any]] = from_yaml(published.text("tables.yaml"))["tables"]


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table of results."""

    __pydantic_config__ = ConfigDict(extra="forbid")
    labels: tuple[str, ...]  # Headings of the label columns
    blocks: tuple[tuple[str, str], ...]  # (test set, heading) pairs, one block of columns each
    directions: tuple[tuple[str, str], ...] = ()  # (t2i or i2t, heading) pairs, in printed order
    # The metrics of each direction, in printed order.
    metrics: tuple[str, ...] = ("R@1", "R@5", "R@10")
    rsum: bool = True
    ratio: str = ""  # Heading of a last column of throughput ratios, "" for none
    labels_above: str = ""  # A heading that spans the label columns, "" for none
    # Columns of each block that belong to no direction; the test set in their key is replaced by
    # the block's.
    single: tuple[Column, ...] = ()
    # Whether a measured and a published row are compared by the mean of the columns, not by their
    # sum.
    by_mean: bool = False

    def choose(self, metrics: Sequence[str]) -> "TableColumns":
        """The same columns with other metrics of each direction, and RSUM; () changes none."""
        if not metrics or not self.directions:
            return self
        chosen_metrics = dict.fromkeys(str(parse(metric)) for metric in metrics)
        return replace(
            self,
            metrics=tuple(metric for metric in chosen_metrics if metric != RSUM.metric),
            rsum=RSUM.metric in chosen_metrics,
        )

    def block(self, test_set: str, title: str = "") -> list[Column]:
        """The columns of numbers of one test set, from left to right."""
        above = (title,) if title else ()
        columns = []
        for side, heading in self.directions:
            for metric in self.metrics:
                column = Column(
                    metric,
                    (*above, heading),
                    key=(test_set, Statistic(side, metric)),
                    less_is_better=parse(metric).less_is_better,
                )
                columns.append(column)
        columns += [replace(column, key=(test_set, column.key[1])) for column in self.single]
        if self.rsum:
            columns.append(Column("RSUM", above, key=(test_set, RSUM)))
        return columns

    def shown(self) -> tuple[Statistic, ...]:
        """What one block shows, in printed order."""
        return tuple(column.key[1] for column in self.block(""))

    def compared(self) -> tuple[Statistic, ...]:
        """The columns by which rows are compared: RSUM if it is shown, else all (with `by_mean`) or
        the recalls.
        """
        if self.rsum:
            return (RSUM,)
        if self.by_mean:
            return self.shown()
        return tuple(name for name in self.shown() if name in RECALLS)

    def numbers(self, delta: bool = False, letters: bool = False) -> list[Column]:
        """All columns of numbers of a row, block by block; each block may end in one of letters and
        of differences.
        """
        columns: list[Column] = []
        for test_set, title in self.blocks:
            above = (title,) if title else ()
            columns += self.block(test_set, title)
            if letters and self.rsum:
                columns.append(Column("", above, key=(test_set, LETTERS)))
            if delta:
                columns.append(Column("Δ", above, key=(test_set, DELTA)))
        return columns

    def columns(self, delta: bool, letters: bool) -> tuple[Column, ...]:
        """The columns of the rendered table, from left to right."""
        above: tuple[str, ...] = ()
        if self.labels_above:
            has_titles = any(title for _, title in self.blocks)
            above = ("", self.labels_above) if has_titles else (self.labels_above,)
        columns = [Column(label, above, "text") for label in self.labels]
        columns += self.numbers(delta, letters)
        if self.ratio:
            columns.append(Column(self.ratio, key=RATIO))
        return tuple(columns)


# What checks and builds tables of a class, which takes milliseconds to make.
ADAPTER = cache(TypeAdapter)


@dataclass(frozen=True, kw_only=True)
class PaperTable(ABC):
    """A table of a paper's numbers, with those measured here below them. Its subclasses say how
    these are measured.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")
    # Its key in `TABLES`; with published rows also the name of their file in `manifests/published`
    name: str
    caption: str  # What it shows; `{data}` is replaced by the data set
    columns: TableColumns
    # The header of a published row; None for a table without published rows.
    published: Callable[[PublishedRow], RowHeader] | None = None
    data: str = ""  # The data of the paper's table, in words
    # (text, sentence) pairs; the sentence joins the caption where a label or heading holds the
    # text.
    legend: tuple[tuple[str, str], ...] = ()
    emphasis: Rule = best_of_columns  # Which rows compete for bold
    notes: tuple[Note, ...] = ()  # Notes on the published rows
    letters: bool = False  # Whether measured rows have letters

    @classmethod
    def listed(cls, name: str, **code: Any) -> Self:
        """A table of `LISTED`, completed by code: which systems it shows, and the headers of its
        rows.
        """
        listed_fields = {key: value for key, value in LISTED[name].items() if key != "varied"}
        rule = getattr(emphasis, listed_fields.pop("emphasis", "best_of_columns"))
        table: Self = ADAPTER(cls).validate_python(
            {**listed_fields, "name": name, "emphasis": rule, **code}
        )
        return table

    @abstractmethod
    def measure(self, results: Results, printed: Sequence[ResultRow]) -> Measured:
        """The measured rows of the first panel, and notes.

        Args:
            results: All that was measured.
            printed: The published rows, whose order the measured ones follow.

        Raises:
            InputError: If what was measured cannot be read.
        """

    def together(self, header: RowHeader) -> Hashable:
        """The key by which published rows are put together."""
        return header.section, header.group

    def printed_cells(self, row: PublishedRow) -> Mapping[MetricKey, tuple[str, Cell]]:
        """The cells of a line of the published table, each with its column there."""
        cells = {}
        for column in self.columns.shown():
            printed_number = row.value(column)
            cell = Cell(MISSING if printed_number is None else printed_number)
            cells[row["dataset"], column] = (str(column), cell)
        return cells

    def build(self, results: Results, request: TableRequest) -> Table:
        """Fill the table."""
        chosen = replace(
            self,
            columns=self.columns.choose(request.metrics),
            letters=request.letters,
        )
        printed, doubts = chosen.published_rows()
        measured = Measured()
        elsewhere: tuple[Panel, ...] = ()
        bases = None
        if request.measured:
            measured = chosen.measure(results, printed)
        if request.delta and measured.rows and chosen.columns.compared():
            bases = {row.header.identity: row for row in printed if row.header.identity}
            measured = replace(measured, notes=[*measured.notes, chosen._note_on_differences()])
        if request.published:
            panel = chosen.panel(printed, measured, doubts, bases)
        else:
            panel = chosen.panel([], measured, [], bases)
        if request.measured:
            elsewhere = tuple(chosen.measure_elsewhere(results, printed))
        if not panel.groups:
            return Table(self.name, elsewhere)
        return Table(self.name, (panel, *elsewhere))

    def _note_on_differences(self) -> Note:
        what = " sum of the recalls shown,"
        if self.columns.rsum:
            what = " RSUM,"
        if self.columns.by_mean:
            what = ", in the mean of a row's errors;"
        return Note(f"Δ: measured minus published{what} from the numbers as shown.")

    def measure_elsewhere(self, results: Results, printed: Sequence[ResultRow]) -> Iterable[Panel]:
        """The panels of what was measured on other data than the paper's."""
        return ()

    def published_rows(self) -> tuple[list[ResultRow], list[Note]]:
        """The published rows, one for each header, and a lettered note for each doubt about a
        column shown.
        """
        if self.published is None:
            return [], []
        rows: dict[RowHeader, ResultRow] = {}
        notes: dict[str, Note] = {}
        for printed_row in published.load(self.name):
            header = self.published(printed_row)
            cells = self.printed_cells(printed_row)
            numbers = rows.setdefault(header, ResultRow(header)).numbers
            marks = _marks_of_doubts(printed_row, {column for column, _ in cells.values()}, notes)
            for key, (column, cell) in cells.items():
                numbers[key] = replace(cell, marks=cell.marks + marks.get(column, ()))
            if printed_row.cells.get("oips"):
                numbers.setdefault(RATIO, Cell(Decimal(printed_row["oips"]), is_factor=True))
        groups = list(dict.fromkeys(map(self.together, rows)))
        rows_in_order = sorted(
            rows.values(), key=lambda row: groups.index(self.together(row.header))
        )
        return rows_in_order, list(notes.values())

    def panel(
        self,
        printed: Sequence[ResultRow],
        measured: Measured,
        doubts: Sequence[Note] = (),
        bases: Mapping[Hashable, ResultRow] | None = None,
    ) -> Panel:
        """Lay out published rows and, apart, measured ones. bases: identity -> published row, for
        differences.
        """
        columns = self.columns.columns(bases is not None, self.letters)
        numbers = self.columns.numbers()
        shown = measured.rows
        if bases is not None:
            shown = [self._compared(row, bases) for row in shown]
        note_on_letters: list[Note] = []
        if self.letters:
            shown, note_on_letters = self._lettered(shown)
        of_published = Emphasis()
        of_measured = Emphasis()
        bold_above = self.emphasis(printed, numbers, of_published)
        bold_below = self.emphasis(measured.rows, numbers, of_measured)
        published_groups = list(result_rows.groups(printed, columns, bold_above))
        lead = "Measured here" if printed else ""
        measured_groups = list(result_rows.groups(shown, columns, bold_below, lead))
        notes = _noting_bold(doubts, published_groups)
        if printed:
            notes += self.notes
        notes += measured.notes
        notes += note_on_letters
        rule = self.emphasis.said(numbers, of_published, of_measured)
        caption = f"{self._caption([*printed, *measured.rows])} {rule}".rstrip()
        bold_rows = [printed[index] for index, _ in bold_above]
        bold_rows += [measured.rows[index] for index, _ in bold_below]
        panel = Panel(
            columns,
            (*published_groups, *measured_groups),
            caption,
            tuple(notes),
            made_from=measured.made_from,
            colours=self.emphasis.colours(bold_rows),
        )
        return panel.lettered()

    def _caption(self, rows: Sequence[ResultRow]) -> str:
        """The caption, with sentences on the shown rows alone."""
        labels = [*self.columns.labels, self.columns.ratio]
        if self.columns.rsum:
            labels.append("RSUM")
        for row in rows:
            labels += [row.header.section, *row.header.labels]
        sentences = [self.caption.format(data=self.data)]
        for abbreviation, sentence in self.legend:
            if any(abbreviation in label for label in labels):
                sentences.append(sentence)
        return " ".join(sentences)

    def _lettered(self, rows: Sequence[ResultRow]) -> tuple[list[ResultRow], list[Note]]:
        """Rows with the letters of each test set's RSUM, and a note where there are letters."""
        rows = [replace(row, numbers={**row.numbers}) for row in rows]
        has_letters = False
        of_rsum = Emphasis()
        for test_set, _ in self.columns.blocks:
            tested = {}
            for index, row in enumerate(rows):
                if (test_set, RSUM) in row.numbers:
                    tested[index] = row.tested_in((test_set, RSUM))
            for index, letters in of_rsum.letters(tested).items():
                rows[index].numbers[test_set, LETTERS] = Cell(letters)
                has_letters = True
        if not has_letters:
            return rows, []
        return rows, [Note(of_rsum.lettered())]

    def _compared(self, row: ResultRow, bases: Mapping[Hashable, ResultRow]) -> ResultRow:
        """A measured row with measured minus published numbers, as printed, if none of them is
        missing.
        """
        published_row = bases.get(row.header.identity)
        # A stand-in is another system.
        if published_row is None or row.header.marks:
            return row
        differences: dict[MetricKey, Cell] = {}
        for test_set, _ in self.columns.blocks:
            compared = self.columns.compared()
            changes_of_recalls = []
            for statistic in compared:
                measured_number = row.numbers.get((test_set, statistic), Cell()).number
                published_number = published_row.numbers.get((test_set, statistic), Cell()).number
                if measured_number is not None and published_number is not None:
                    changes_of_recalls.append(measured_number - published_number)
            if changes_of_recalls and len(changes_of_recalls) == len(compared):
                change = sum(changes_of_recalls, Decimal())
                if self.columns.by_mean:
                    change = table.rounded(float(change / len(changes_of_recalls)), places=3)
                differences[test_set, DELTA] = Cell(change, is_difference=True)
        return replace(row, numbers=row.numbers | differences)


def _marks_of_doubts(
    printed_row: PublishedRow, columns: Set[str], notes: dict[str, Note]
) -> dict[str, tuple[str, ...]]:
    """Column -> marks of the doubts about a published line; `notes` get those that are new."""
    marks: dict[str, tuple[str, ...]] = {}
    for doubt in printed_row.doubts:
        if columns.isdisjoint(doubt.columns):
            continue
        note = notes.setdefault(doubt.note, Note(doubt.note, mark=statistics.LETTERS[len(notes)]))
        marks |= dict.fromkeys(doubt.columns, (note.mark,))
    return marks


def _noting_bold(doubts: Sequence[Note], groups: Sequence[RowGroup]) -> list[Note]:
    """The notes on doubtful cells; where one is bold, its note says that bold follows the print."""
    of_bold_cells: set[str] = set()
    for group in groups:
        for row in group.rows:
            for cell in row.cells:
                if cell.bold:
                    of_bold_cells.update(cell.marks)
    notes = []
    for note in doubts:
        if note.mark in of_bold_cells:
            note = replace(note, text=f"{note.text} Bold follows the cell as printed.")
        notes.append(note)
    return notes


@dataclass(frozen=True, kw_only=True)
class RetrievalTable(PaperTable):
    """The definition of a retrieval table: everything but the measured numbers."""

    # The header of a measured system, None for one that the table does not show.
    measured: Callable[[MeasuredSystem], RowHeader | None]
    # The systems that the table is made from; most are made from those of results/metrics.json.
    source: Callable[[Results], Iterable[MeasuredSystem]] = lambda results: results.systems
    # The columns on other data than the paper's, from the first system that was measured there;
    # None for a table that shows no other data, because another one of the paper has the same rows.
    elsewhere: Callable[[TableColumns, MeasuredSystem], TableColumns] | None = (
        lambda columns, system: columns
    )
    # The recipe that counts as 1.0× in the column of ratios, as in the paper; "" if it is not timed
    # here.
    base: str = ""
    zero_shot: bool = False  # Whether pretrained dual encoders have rows of their own
    # Whether given systems have rows: on the paper's test sets, and with `zero_shot` on others.
    given: bool = False
    # Whether recipes that vary one part of a paper's have rows; most of them have tables of their
    # own.
    variants: bool = True

    def header(self, system: MeasuredSystem) -> RowHeader | None:
        """The header of a measured system, in a section of its own if no head made it; None for one
        not shown.
        """
        origin = system.origin
        labels = self.columns.labels
        if not origin.section:
            is_variant = names.is_variant(origin.recipe, system.members[0].settings)
            if is_variant and not self.variants:
                return None
            return self.measured(system)
        shown = self.zero_shot
        if origin.section == GIVEN:
            on_test_sets = origin.benchmark in dict(self.columns.blocks)
            shown = self.given and (self.zero_shot or on_test_sets)
        if not shown:
            return None
        method_column = len(labels) - 1
        if "Method" in labels:
            method_column = labels.index("Method")
        row_labels = [""] * len(labels)
        row_labels[method_column] = system.label()
        section = origin.section.capitalize()
        return RowHeader(tuple(row_labels), section, section, competes=origin.competes)

    def measure(self, results: Results, printed: Sequence[ResultRow]) -> Measured:
        """What was measured on the paper's test sets, see `PaperTable.measure`."""
        test_sets = dict(self.columns.blocks)
        systems = self._systems(results)
        on_test_sets = [system for system in systems if system.origin.benchmark in test_sets]
        return self._measured(on_test_sets, results, printed)

    def measure_elsewhere(self, results: Results, printed: Sequence[ResultRow]) -> Iterator[Panel]:
        """A panel for each other test set."""
        if self.elsewhere is None:
            return
        for systems in self.apart(self._systems(results)):
            origin = systems[0].origin
            data = self.data_of(origin)
            columns = replace(self.elsewhere(self.columns, systems[0]), blocks=((data, ""),))
            other = replace(self, columns=columns, data=data)
            panel = other.panel((), other._measured(systems, results, printed, data))
            yield replace(panel, key=origin.dataset)

    def apart(self, systems: Sequence[MeasuredSystem]) -> list[list[MeasuredSystem]]:
        """Group the systems whose numbers have panels of their own, by test set."""
        return outside_benchmarks(systems)

    def data_of(self, origin: Origin) -> str:
        """Name a test set in a caption."""
        pool = f"{origin.split} split, {origin.images:,} images, {origin.captions:,} captions"
        return f"{names.dataset(origin.dataset)} ({pool})"

    def _systems(self, results: Results) -> list[MeasuredSystem]:
        return [system for system in self.source(results) if self.header(system)]

    def _measured(
        self,
        systems: Sequence[MeasuredSystem],
        results: Results,
        printed: Sequence[ResultRow],
        test_set: str | None = None,
    ) -> Measured:
        timed = None
        ratios: Mapping[str, Decimal] = {}
        if self.base and results.throughput:
            timed = throughput.read(results.throughput)
            ratios = timed.ratios(self.base)
        notes = result_rows.remarks(systems)
        made_from = result_rows.made_from(systems)
        if timed and ratios and systems:
            how_timed = timed.methods.get("poolings", "")
            made_from.append(f"#OIPs: multiples of {self.base}. {how_timed}")
            if timed.busy and self.columns.ratio:
                sentence = (
                    f"{self.columns.ratio}: other work ran on the machine while measured rows were "
                    "timed; time them again."
                )
                notes.append(Note(sentence))
        rows = result_rows.measured_rows(systems, self.header, ratios, test_set)
        return Measured(result_rows.in_order(rows, printed), notes, tuple(made_from))
