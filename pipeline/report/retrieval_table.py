"""Tables of results: the definition of rows, columns and sources, from which a `Table` of measured
numbers is made.

The first panel has the paper's columns: the published rows, and below them, apart, those measured
here on the same test sets. Measurements on other data follow in panels of their own, never under
the paper's headings.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import Any, Self

from pydantic import ConfigDict, TypeAdapter

from pipeline.evaluation.metrics import RSUM, Statistic, parse
from pipeline.files.parsing import from_yaml
from pipeline.report import emphasis, names, published, result_rows, table, throughput
from pipeline.report.emphasis import PairedTests, Rule, best_of_columns
from pipeline.report.measured import MeasuredSystem, Origin, Results, outside_benchmarks
from pipeline.report.published import RECALLS, PublishedRow
from pipeline.report.result_rows import DELTA, LETTERS, RATIO, Measured, ResultRow, RowHeader
from pipeline.report.table import (
    MISSING,
    Bold,
    Cell,
    Column,
    MetricKey,
    Note,
    Panel,
    Table,
    TableRequest,
)
from pipeline.systems.scores.made import GIVEN

# What manifests/published/tables.yaml says of each table.
LISTED: dict[str, dict[str, Any]] = from_yaml(published.text("tables.yaml"))["tables"]


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table of results."""

    __pydantic_config__ = ConfigDict(extra="forbid")
    labels: tuple[str, ...]  # Headings of the label columns
    blocks: tuple[tuple[str, str], ...]  # (test set, heading) pairs, one block of columns each
    directions: tuple[tuple[str, str], ...] = ()  # (t2i or i2t, heading) pairs, in printed order
    metrics: tuple[str, ...] = (
        "R@1",
        "R@5",
        "R@10",
    )  # The metrics of each direction, in printed order
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
        names = dict.fromkeys(str(parse(name)) for name in metrics)
        return replace(
            self,
            metrics=tuple(name for name in names if name != RSUM.metric),
            rsum=RSUM.metric in names,
        )

    def block(self, test_set: str, title: str = "") -> list[Column]:
        """The columns of numbers of one test set, from left to right."""
        above = (title,) if title else ()
        columns = [
            Column(
                metric,
                (*above, heading),
                key=(test_set, Statistic(side, metric)),
                less_is_better=parse(metric).less_is_better,
            )
            for side, heading in self.directions
            for metric in self.metrics
        ]
        columns += [replace(each, key=(test_set, each.key[1])) for each in self.single]
        return [*columns, Column("RSUM", above, key=(test_set, RSUM))] if self.rsum else columns

    def shown(self) -> tuple[Statistic, ...]:
        """What one block shows, in printed order."""
        return tuple(column.key[1] for column in self.block(""))

    def compared(self) -> tuple[Statistic, ...]:
        """The columns by which rows are compared: RSUM if it is shown, else all (with `by_mean`) or
        the recalls.
        """
        if self.rsum or self.by_mean:
            return (RSUM,) if self.rsum else self.shown()
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
        above_labels: tuple[str, ...] = (self.labels_above,) if self.labels_above else ()
        if above_labels and any(title for _, title in self.blocks):
            above_labels = ("", *above_labels)
        columns = [Column(label, above_labels, "text") for label in self.labels] + self.numbers(
            delta, letters
        )
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
    emphasis: Rule = best_of_columns  # The rule that says which numbers are bold
    notes: tuple[Note, ...] = ()  # Notes on the published rows
    bold: Bold = "tied"  # Which measured numbers are bold
    letters: bool = False  # Whether measured rows have letters

    @classmethod
    def listed(cls, name: str, **code: Any) -> Self:
        """A table of `LISTED`, completed by code: which systems it shows, and the headers of its
        rows.
        """
        fields = {key: value for key, value in LISTED[name].items() if key != "varied"}
        rule = getattr(emphasis, fields.pop("emphasis", "best_of_columns"))
        table: Self = ADAPTER(cls).validate_python(
            {**fields, "name": name, "emphasis": rule, **code}
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
        numbers = {column: row.value(column) for column in self.columns.shown()}
        return {
            (row["dataset"], column): (str(column), Cell(MISSING if number is None else number))
            for column, number in numbers.items()
        }

    def build(self, results: Results, request: TableRequest) -> Table:
        """Fill the table."""
        chosen = replace(
            self,
            columns=self.columns.choose(request.metrics),
            bold=request.bold,
            letters=request.letters,
        )
        printed, doubts = chosen.published_rows()
        measured = chosen.measure(results, printed) if request.measured else Measured()
        bases = None
        if request.delta and measured.rows and chosen.columns.compared():
            bases = {row.header.identity: row for row in printed if row.header.identity}
            what = " RSUM," if chosen.columns.rsum else " sum of the recalls shown,"
            if chosen.columns.by_mean:
                what = ", in the mean of a row's errors;"
            measured = replace(
                measured,
                notes=[
                    *measured.notes,
                    Note(f"Δ: measured minus published{what} from the numbers as shown."),
                ],
            )
        shown, doubted = (printed, doubts) if request.published else ([], [])
        panel = chosen.panel(shown, measured, doubted, bases)
        elsewhere = chosen.measure_elsewhere(results, printed) if request.measured else ()
        return Table(self.name, (panel, *elsewhere) if panel.groups else tuple(elsewhere))

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
        for line in published.load(self.name):
            header, cells = self.published(line), self.printed_cells(line)
            numbers = rows.setdefault(header, ResultRow(header)).numbers
            marks: dict[str, tuple[str, ...]] = {}
            for doubt in line.doubts:
                if set(doubt.columns) & {column for column, _ in cells.values()}:
                    note = notes.setdefault(
                        doubt.note, Note(doubt.note, mark=table.LETTERS[len(notes)])
                    )
                    marks |= dict.fromkeys(doubt.columns, (note.mark,))
            numbers |= {
                key: replace(cell, marks=cell.marks + marks.get(column, ()))
                for key, (column, cell) in cells.items()
            }
            if line.cells.get("oips"):
                numbers.setdefault(RATIO, Cell(Decimal(line["oips"]), is_factor=True))
        groups = list(dict.fromkeys(map(self.together, rows)))
        return sorted(rows.values(), key=lambda row: groups.index(self.together(row.header))), [
            *notes.values()
        ]

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
        columns, numbers = (
            self.columns.columns(bases is not None, self.letters),
            self.columns.numbers(),
        )
        compared = (
            measured.rows
            if bases is None
            else [self._compared(row, bases) for row in measured.rows]
        )
        compared, lettered = self._lettered(compared) if self.letters else (compared, [])
        tests = PairedTests() if self.bold == "tied" else None
        bold_above = self.emphasis(printed, numbers)
        bold_below = self.emphasis(measured.rows, numbers, lone=False, tests=tests)
        above = list(result_rows.groups(printed, columns, bold_above))
        below = list(
            result_rows.groups(compared, columns, bold_below, "Measured here" if printed else "")
        )
        bold = {
            mark
            for group in above
            for row in group.rows
            for cell in row.cells
            if cell.bold
            for mark in cell.marks
        }
        notes = [
            replace(note, text=f"{note.text} Bold follows the cell as printed.")
            if note.mark in bold
            else note
            for note in doubts
        ]
        caption = self._caption([*printed, *measured.rows])
        if marked := [printed[index] for index, _ in bold_above] + [
            measured.rows[index] for index, _ in bold_below
        ]:
            caption += " " + self.emphasis.said(numbers, printed, measured.rows)
        return Panel(
            columns,
            (*above, *below),
            caption,
            (
                *notes,
                *(self.notes if printed else ()),
                *measured.notes,
                *(tests.notes() if tests else ()),
                *lettered,
            ),
            made_from=measured.made_from,
            colours=self.emphasis.colours(marked, {*bold_above.values(), *bold_below.values()}),
        ).lettered()

    def _caption(self, rows: Sequence[ResultRow]) -> str:
        """The caption, with sentences on the shown rows alone."""
        words = [*self.columns.labels, self.columns.ratio, "RSUM" if self.columns.rsum else ""]
        words += [text for row in rows for text in (row.header.section, *row.header.labels)]
        return " ".join(
            [
                self.caption.format(data=self.data),
                *(
                    sentence
                    for text, sentence in self.legend
                    if any(text in word for word in words)
                ),
            ]
        )

    def _lettered(self, rows: Sequence[ResultRow]) -> tuple[list[ResultRow], list[Note]]:
        """Rows with the letters of each test set's RSUM, and a note where there are letters."""
        rows = [replace(row, numbers={**row.numbers}) for row in rows]
        for test_set, _ in self.columns.blocks:
            tested = {
                index: row.tested.get((test_set, RSUM))
                for index, row in enumerate(rows)
                if (test_set, RSUM) in row.numbers
            }
            for index, letters in PairedTests().letters(tested).items():
                rows[index].numbers[test_set, LETTERS] = Cell(letters)
        shown = any(key[1] == LETTERS for row in rows for key in row.numbers)
        return rows, [Note(f"{emphasis.LETTERED}.")] if shown else []

    def _compared(self, row: ResultRow, bases: Mapping[Hashable, ResultRow]) -> ResultRow:
        """A measured row with measured minus published numbers, as printed, if none of them is
        missing.
        """
        base = (
            None if row.header.marks else bases.get(row.header.identity)
        )  # a stand-in is another system
        differences: dict[MetricKey, Cell] = {}
        for test_set, _ in self.columns.blocks if base else ():
            pairs = [
                [each.numbers.get((test_set, name), Cell()).number for each in (row, base) if each]
                for name in self.columns.compared()
            ]
            changes = [
                first - second
                for first, second in pairs
                if first is not None and second is not None
            ]
            if changes and len(changes) == len(pairs):
                total = sum(changes, Decimal())
                shown = (
                    table.rounded(float(total / len(changes)), places=3)
                    if self.columns.by_mean
                    else total
                )
                differences[test_set, DELTA] = Cell(shown, is_difference=True)
        return replace(row, numbers=row.numbers | differences)


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
        origin, labels = system.origin, self.columns.labels
        if not origin.section:
            varies = names.is_variant(origin.recipe, system.members[0].settings)
            return self.measured(system) if self.variants or not varies else None
        own = self.zero_shot or origin.benchmark in dict(self.columns.blocks)
        if not (self.given and own if origin.section == GIVEN else self.zero_shot):
            return None
        place = labels.index("Method") if "Method" in labels else len(labels) - 1
        texts = [system.label() if number == place else "" for number in range(len(labels))]
        section = origin.section.capitalize()
        return RowHeader(tuple(texts), section, section, competes=origin.section == GIVEN)

    def measure(self, results: Results, printed: Sequence[ResultRow]) -> Measured:
        """What was measured on the paper's test sets, see `PaperTable.measure`."""
        here = [
            system
            for system in self._systems(results)
            if system.origin.benchmark in dict(self.columns.blocks)
        ]
        return self._measured(here, results, printed)

    def measure_elsewhere(self, results: Results, printed: Sequence[ResultRow]) -> Iterator[Panel]:
        """A panel for each other test set."""
        for systems in self.apart(self._systems(results)) if self.elsewhere else ():
            origin = systems[0].origin
            data = self.data_of(origin)
            assert self.elsewhere is not None
            columns = replace(self.elsewhere(self.columns, systems[0]), blocks=((data, ""),))
            other = replace(self, columns=columns, data=data)
            yield replace(
                other.panel((), other._measured(systems, results, printed, data)),
                key=origin.dataset,
            )

    def apart(self, systems: Sequence[MeasuredSystem]) -> list[list[MeasuredSystem]]:
        """Group the systems whose numbers have panels of their own, by test set."""
        return outside_benchmarks(systems)

    def data_of(self, origin: Origin) -> str:
        """Name a test set in a caption."""
        return (
            f"{names.dataset(origin.dataset)} ({origin.split} split, {origin.images:,} images, "
            f"{origin.captions:,} captions)"
        )

    def _systems(self, results: Results) -> list[MeasuredSystem]:
        return [system for system in self.source(results) if self.header(system)]

    def _measured(
        self,
        systems: Sequence[MeasuredSystem],
        results: Results,
        printed: Sequence[ResultRow],
        test_set: str | None = None,
    ) -> Measured:
        timed = throughput.read(results.throughput) if self.base and results.throughput else None
        ratios = timed.ratios(self.base) if timed else {}
        notes, made_from = result_rows.remarks(systems), result_rows.made_from(systems)
        if timed and ratios and systems:
            made_from.append(
                f"#OIPs: multiples of {self.base}. {timed.methods.get('poolings', '')}"
            )
            if timed.busy and self.columns.ratio:
                notes.append(
                    Note(
                        f"{self.columns.ratio}: other work ran on the machine while measured rows were "
                        "timed; time them again."
                    )
                )
        rows = result_rows.measured_rows(systems, self.header, ratios, test_set)
        return Measured(result_rows.in_order(rows, printed), notes, tuple(made_from))
