"""The results of a test set: each system's recalls and RSUM, with intervals or the deviation over
seeds, best first.
"""

import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from pipeline.foundation.evaluation.metrics import RSUM, STATISTICS, Statistic
from pipeline.foundation.evaluation.metrics.base import TASKS, at
from pipeline.judge.tables import comma_separated, latex
from pipeline.judge.tables.bold import NEVER_BOLD, ColumnTests, Emphasis, TestedColumn
from pipeline.judge.tables.compared import RANKS_BRIEFLY
from pipeline.judge.tables.table import (
    Cell,
    Column,
    Note,
    Panel,
    RowGroup,
    Table,
    TableRow,
    from_to,
    rounded,
)
from pipeline.run.provenance.results import Result
from pipeline.run.report import names
from pipeline.run.report.measured import MeasuredSystem, Origin, read_metrics
from pipeline.run.report.names import STAND_IN
from pipeline.run.report.page.charts import Axis, ticks
from pipeline.run.report.result_rows import remarks
from pipeline.run.report.retrieval_table import RetrievalTable
from pipeline.run.report.tables.vse2ad import TABLE1 as MAIN
from pipeline.run.report.tables.vse_infty import TABLE9, TABLE10

# Tables of whole systems. If several print a system on a test set, the first one counts.
TABLES: tuple[RetrievalTable, ...] = (MAIN, TABLE9, TABLE10)
# RSUM first: a phone shows no more.
COLUMNS: tuple[Statistic, ...] = (RSUM, *(column for column in STATISTICS if column != RSUM))


@dataclass(frozen=True)
class HeadlineRow:
    """One system over its seeds."""

    # Its method, features, text encoder and further steps: "VSE+2AD, RGP, BiGRU"; of a dual encoder
    # or given system its title.
    name: str
    visual: str  # its visual features in words, "" where no head made it
    systems: Sequence[str]  # its names in `results/metrics.json`, one a seed
    numbers: Mapping[Statistic, Cell]  # of `STATISTICS`; bold by the rule of all tables
    # Of RSUM: the ends of its interval, or the lowest and highest of several seeds.
    ends: tuple[float, float]
    stand_ins: Sequence[str]  # networks that are not the papers'
    untrained: Sequence[str]  # the features that untrained networks made
    competes: bool  # whether its numbers may be bold
    # Language -> mR with captions in it alone, {} where captions are in one language.
    languages: Mapping[str, Cell]
    # What a paper prints of the same system on this test set, {} for nothing.
    published: Mapping[Statistic, Cell]
    # Of its RSUM: rows that share one do not differ significantly; "" without tests.
    letters: str = ""
    # Likewise the best and the worst rank, "1–3".
    rank: str = ""

    @property
    def by(self) -> str:
        """What is below its name: its features in words, and how many seeds there are."""
        seeds = ""
        if len(self.systems) > 1:
            seeds = f"{len(self.systems)} seeds"
        return ", ".join(filter(None, (self.visual, seeds)))

    @property
    def rsum(self) -> Cell:
        """Its RSUM."""
        return self.numbers[RSUM]

    @property
    def published_rsum(self) -> Cell | None:
        """What a paper prints as its RSUM."""
        return self.published.get(RSUM)


@dataclass(frozen=True)
class Headline:
    """The results on one test set by one protocol."""

    # of one of the systems: the data set, split and protocol, with numbers of images and captions
    origin: Origin
    rows: Sequence[HeadlineRow]  # the systems, in the order of the whole page
    notes: Sequence[Note]  # what is bold
    # On the rows, as the tables have them; the page says these in words of its own.
    remarks: Sequence[Note]
    tests: ColumnTests | None  # of RSUM, by the places of the rows; None without tests

    @property
    def data(self) -> str:
        """The data set's name for readers."""
        return names.dataset(self.origin.dataset)

    @property
    def what(self) -> str:
        """The pool and the protocol."""
        origin = self.origin
        pool = f"{origin.split} split, {origin.images:,} images and {origin.captions:,} captions"
        if origin.lacks:
            return f"{pool}, protocol {origin.protocol}; left out: {origin.lacks}"
        return f"{pool}, protocol {origin.protocol}"

    @property
    def heading(self) -> str:
        """What is written above the table: the data set, pool and protocol."""
        return f"{self.data[:1].upper()}{self.data[1:]}: {self.what}"

    @property
    def order(self) -> list[int]:
        """The places of the rows by RSUM, the largest first."""
        return sorted(range(len(self.rows)), key=lambda place: -(self.rows[place].rsum.number or 0))

    @property
    def ranked(self) -> list[HeadlineRow]:
        """The rows by RSUM, the largest first."""
        return [self.rows[place] for place in self.order]

    @property
    def is_sorted(self) -> bool:
        """Whether RSUM falls from row to row: on a further test set the rows keep their order."""
        sums = [row.rsum.number or 0 for row in self.rows]
        return sums == sorted(sums, reverse=True)

    @property
    def axis(self) -> Axis:
        """The axis that has the intervals and published numbers of all rows."""
        ends: list[float] = []
        for row in self.rows:
            ends += row.ends
            if row.published_rsum and row.published_rsum.number is not None:
                ends.append(float(row.published_rsum.number))
        return Axis(ticks(min(ends), max(ends), 5))

    @property
    def bold_in_short(self) -> str:
        """What RSUMs in bold have in common; "" where none is bold."""
        if not any(row.rsum.bold for row in self.rows):
            return ""
        sentence = "Bold: the best"
        if any(row.letters for row in self.rows):
            sentence += ", and every system not significantly worse than it"
        if any(note.text == NEVER_BOLD for note in self.notes):
            return f"{sentence}. {NEVER_BOLD}"
        return f"{sentence}."

    @property
    def stand_ins(self) -> list[str]:
        """The stand-ins of all rows."""
        networks: set[str] = set()
        for row in self.rows:
            networks.update(row.stand_ins)
        return sorted(networks)

    @property
    def table(self) -> Table:
        """The rows as a paper's table, without intervals."""
        lettered = any(row.letters for row in self.rows)
        columns = [Column("System", kind="text")]
        if lettered:
            columns += [Column("Rank", kind="text"), Column("Letters", kind="text")]
        for column in COLUMNS:
            headings_above = (TASKS[column.direction],) if column.direction else ()
            columns.append(Column(column.metric, headings_above, key=("", column)))
        rows = []
        for row in self.rows:
            marks = (STAND_IN,) if row.stand_ins else ()
            label = ", ".join(filter(None, (row.name, row.by)))
            cells = [Cell(label, marks=marks)]
            if lettered:
                cells += [Cell(row.rank), Cell(row.letters)]
            cells += [replace(row.numbers[column], interval=None) for column in COLUMNS]
            rows.append(TableRow(tuple(cells), tuple(row.systems)))
        panel = Panel(
            tuple(columns),
            (RowGroup(tuple(rows)),),
            caption=f"{self.heading}. Recalls in percent.",
            notes=(*self.notes, *self.remarks),
            key=self.origin.dataset,
        )
        return Table("results", (panel,))

    @property
    def copies(self) -> dict[str, str]:
        """The table as text in the forms that it is copied in."""
        # A comment in it says what pdflatex cannot set.
        with warnings.catch_warnings(action="ignore"):
            return {"LaTeX": latex.to_latex(self.table), "CSV": comma_separated.to_csv(self.table)}


def best_first(metrics: Mapping[str, Result]) -> list[str]:
    """The order of systems on the whole page: by RSUM of their first protocol, the mean over seeds,
    the largest first.

    The names of results/metrics.json.
    """
    rsum_of_system: dict[str, float] = {}
    for system in read_metrics(metrics):
        if RSUM in system.values:
            for name in system.systems:
                rsum_of_system.setdefault(name, system.mean(RSUM))
    for name, result in metrics.items():
        # A lone head that is also an ensemble of one.
        if name not in rsum_of_system:
            scores = next(iter(result.numbers.values()), {RSUM.metric: 0.0})
            rsum_of_system[name] = float(scores[RSUM.metric])
    return sorted(metrics, key=lambda name: -rsum_of_system[name])


def headlines(metrics: Mapping[str, Result]) -> list[Headline]:
    """The tables of results, one for each test set and protocol. CxC's recalls, without an RSUM,
    have tables alone.
    """
    order = best_first(metrics)
    systems = sorted(read_metrics(metrics), key=lambda system: order.index(system.systems[0]))
    by_test_set: dict[tuple[str, str, str, int, int], list[MeasuredSystem]] = defaultdict(list)
    for system in systems:
        origin = system.origin
        if origin.protocol != "cxc":
            pool = (origin.images, origin.captions)
            test_set = (origin.dataset, origin.split, origin.protocol, *pool)
            by_test_set[test_set].append(system)
    return [_headline(of_test_set, metrics) for of_test_set in by_test_set.values()]


def _headline(systems: Sequence[MeasuredSystem], metrics: Mapping[str, Result]) -> Headline:
    competing = {}
    for index, system in enumerate(systems):
        if system.origin.competes:
            competing[index] = system
    emphasis = Emphasis()
    bold: dict[int, set[Statistic]] = defaultdict(set)
    for column in STATISTICS:
        means = {index: rounded(system.mean(column)) for index, system in competing.items()}
        for index in emphasis.bold(means, _tested(systems, column)):
            bold[index].add(column)
    of_sums = _tested(systems, RSUM)
    tests = emphasis.tests(of_sums)
    letters = emphasis.letters(of_sums)
    ranks: Mapping[int, tuple[int, int]] = {}
    if tests is not None and letters:
        ranks = tests.ranks()
    sentences = [emphasis.said()]
    if len(competing) < len(systems):
        sentences.append(NEVER_BOLD)
    if letters:
        sentences.append(f"{emphasis.lettered()} {RANKS_BRIEFLY}")
    rows = []
    for index, system in enumerate(systems):
        row = _row(system, metrics, bold[index])
        if index in ranks:
            row = replace(row, letters=letters[index], rank=from_to(ranks[index]))
        rows.append(row)
    notes = [Note(sentence) for sentence in sentences if sentence]
    return Headline(systems[0].origin, rows, notes, remarks(systems), tests)


def _tested(systems: Sequence[MeasuredSystem], column: Statistic) -> dict[int, TestedColumn | None]:
    """What paired tests of a column need, by the index of the row."""
    tested: dict[int, TestedColumn | None] = {}
    for index, system in enumerate(systems):
        of_system = system.tested.get(column)
        if of_system is not None:
            of_system = replace(of_system, competes=system.origin.competes)
        tested[index] = of_system
    return tested


def _row(
    system: MeasuredSystem, metrics: Mapping[str, Result], bold: Set[Statistic]
) -> HeadlineRow:
    origin = system.origin
    numbers = {}
    for column in STATISTICS:
        cell = system.cell(column, _interval(system, column, metrics))
        numbers[column] = replace(cell, bold="black" if column in bold else None)
    languages = {}
    for statistic in system.values:
        if statistic.direction and statistic.metric == "mR":
            languages[statistic.direction] = system.cell(statistic)
    visual = names.features(origin.visual)
    method = names.method(origin.recipe, origin.visual)
    name_parts = [method, origin.visual, names.encoder(origin.text)]
    if origin.section:
        visual = ""
        name_parts = [system.label()]
    return HeadlineRow(
        name=", ".join((*name_parts, *origin.steps)),
        visual=visual,
        systems=system.systems,
        numbers=numbers,
        ends=_ends(system, metrics),
        stand_ins=names.stand_ins(system.members),
        untrained=origin.untrained,
        competes=origin.competes,
        languages=languages,
        published=_published(system),
    )


def _published(system: MeasuredSystem) -> dict[Statistic, Cell]:
    """What a paper prints of the same method, features and text encoder on the test set of the
    system.
    """
    test_set = system.origin.benchmark
    if test_set is None or system.origin.steps:
        return {}
    for table in TABLES:
        header = table.header(system)
        if header is None or not header.identity:
            continue
        for row in table.published_rows()[0]:
            if row.header.identity != header.identity:
                continue
            published_numbers = {}
            for column in STATISTICS:
                cell = row.numbers.get((test_set, column))
                if cell and cell.number is not None:
                    published_numbers[column] = cell
            if published_numbers:
                return published_numbers
    return {}


def _ends(system: MeasuredSystem, metrics: Mapping[str, Result]) -> tuple[float, float]:
    """The interval of RSUM; over several seeds, or without an interval, the lowest and highest."""
    interval = _interval(system, RSUM, metrics)
    if interval and len(system.systems) == 1:
        return interval
    sums = system.values[RSUM]
    return min(sums), max(sums)


def _interval(
    system: MeasuredSystem, column: Statistic, metrics: Mapping[str, Result]
) -> tuple[float, float] | None:
    """The interval that `pipeline evaluate` wrote for one run; None where it wrote none."""
    numbers = metrics[system.systems[0]].numbers[system.origin.protocol]
    interval = numbers.get("interval")
    if not interval:
        return None
    lower_end, upper_end = at(interval, column)
    return float(lower_end), float(upper_end)
