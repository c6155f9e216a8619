"""The results of a test set: each system's recalls and RSUM, with intervals or the deviation over
seeds, best first.
"""

import warnings
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from decimal import Decimal

from pipeline.evaluation.metrics import RSUM, STATISTICS, Statistic
from pipeline.evaluation.metrics.numbers import TASKS, at
from pipeline.provenance.results import Result
from pipeline.report import comma_separated, emphasis, latex, names
from pipeline.report.measured import MeasuredSystem, Origin, read_metrics
from pipeline.report.names import STAND_IN
from pipeline.report.page.charts import ticks
from pipeline.report.result_rows import remarks
from pipeline.report.retrieval_table import RetrievalTable
from pipeline.report.table import (
    Bold,
    Cell,
    Column,
    Note,
    Panel,
    RowGroup,
    Table,
    TableRow,
    rounded,
)
from pipeline.report.tables.vse2ad import TABLE1 as MAIN
from pipeline.report.tables.vse_infty import TABLE9, TABLE10
from pipeline.systems.scores.made import FINE_TUNED, ZERO_SHOT

# Tables of whole systems. If several print a system on a test set, the first one counts.
TABLES: tuple[RetrievalTable, ...] = (MAIN, TABLE9, TABLE10)
# RSUM first: a phone shows no more.
COLUMNS: tuple[Statistic, ...] = (RSUM, *(column for column in STATISTICS if column != RSUM))
BEST = Note(
    "Bold: the best of a column, as papers print it, whether or not a test tells it from the next."
)
TOLD = Note(
    "Bold: the best of a column, where a paired randomisation test over images tells it from every other "
    "(two-sided, 5 %, Holm's correction within the column; of RSUM for all pairs). A column without bold "
    "has too few images for that."
)
# The note of the other tables, too.
NEVER_BOLD = Note(
    "Dual encoders, and systems rescored by the test queries together, are never bold."
)


@dataclass(frozen=True)
class HeadlineRow:
    """One system over its seeds."""

    method: str  # its method, and the steps after its ensemble
    text: str  # its text encoder, "" where no head made it
    visual: str  # its visual features; of a dual encoder or given system, which has none, its title
    systems: Sequence[str]  # its names in `results/metrics.json`, one a seed
    numbers: Mapping[Statistic, Cell]  # of `STATISTICS`; bold where it is the best of the table
    ends: tuple[
        float, float
    ]  # of RSUM: the ends of its interval, or the lowest and highest of several seeds
    stand_ins: Sequence[str]  # networks that are not the papers'
    letters: (
        str  # of its RSUM: rows that share one are not told apart; "" where rows are not tested
    )
    languages: Mapping[
        str, Cell
    ]  # language -> mR with captions in it alone, {} where captions are in one language
    published: Mapping[
        Statistic, Cell
    ]  # what a paper prints of the same system on this test set, {} for nothing

    @property
    def by(self) -> str:
        """What is below its features: the method, the text encoder, and how many seeds there
        are.
        """
        seeds = f"{len(self.systems)} seeds" if len(self.systems) > 1 else ""
        return ", ".join(filter(None, (self.method, self.text, seeds)))

    @property
    def rsum(self) -> Cell:
        """Its RSUM."""
        return self.numbers[RSUM]


@dataclass(frozen=True)
class Axis:
    """An axis of RSUM, as positions in percent of its length."""

    ticks: Sequence[float]  # round values from one end to the other

    def place(self, value: float | Decimal) -> float:
        """The position of a value."""
        return round(100 * (float(value) - self.ticks[0]) / (self.ticks[-1] - self.ticks[0]), 2)


@dataclass(frozen=True)
class Headline:
    """The results on one test set by one protocol."""

    # of one of the systems: the data set, split and protocol, with numbers of images and captions
    origin: Origin
    rows: Sequence[HeadlineRow]  # the systems, in the order of the whole page
    notes: Sequence[Note]  # what is bold
    remarks: Sequence[
        Note
    ]  # on the rows, as the tables have them; the page says these in words of its own

    @property
    def data(self) -> str:
        """The data set's name for readers."""
        return names.dataset(self.origin.dataset)

    @property
    def what(self) -> str:
        """The pool and the protocol."""
        o = self.origin
        lacks = f"; left out: {o.lacks}" if o.lacks else ""
        return f"{o.split} split, {o.images:,} images and {o.captions:,} captions, protocol {o.protocol}{lacks}"

    @property
    def heading(self) -> str:
        """What is written above the table: the data set, pool and protocol."""
        return f"{self.data[:1].upper()}{self.data[1:]}: {self.what}"

    @property
    def first(self) -> HeadlineRow:
        """The row of the largest RSUM."""
        return max(self.rows, key=lambda row: row.rsum.number or 0)

    @property
    def is_sorted(self) -> bool:
        """Whether RSUM falls from row to row: on a further test set the rows keep their order."""
        sums = [row.rsum.number or 0 for row in self.rows]
        return sums == sorted(sums, reverse=True)

    @property
    def axis(self) -> Axis:
        """The axis that has the intervals of all rows."""
        return Axis(
            ticks(min(row.ends[0] for row in self.rows), max(row.ends[1] for row in self.rows), 5)
        )

    @property
    def stand_ins(self) -> list[str]:
        """The stand-ins of all rows."""
        return sorted({stand_in for row in self.rows for stand_in in row.stand_ins})

    @property
    def table(self) -> Table:
        """The rows as a paper's table, without intervals."""
        columns = [
            Column(
                column.metric,
                (TASKS[column.direction],) if column.direction else (),
                key=("", column),
            )
            for column in COLUMNS
        ]
        lettered = any(row.letters for row in self.rows)
        headings = (
            [Column("System", kind="text"), Column("Letters", kind="text")]
            if lettered
            else [Column("System", kind="text")]
        )
        rows = [
            TableRow(
                (
                    Cell(f"{row.visual}, {row.by}", marks=(STAND_IN,) if row.stand_ins else ()),
                    *([Cell(row.letters)] if lettered else []),
                    *(replace(row.numbers[column], interval=None) for column in COLUMNS),
                ),
                tuple(row.systems),
            )
            for row in self.rows
        ]
        return Table(
            "results",
            (
                Panel(
                    (*headings, *columns),
                    (RowGroup(tuple(rows)),),
                    caption=f"{self.heading}. Recalls in percent.",
                    notes=(*self.notes, *self.remarks),
                    key=self.origin.dataset,
                ),
            ),
        )

    @property
    def copies(self) -> dict[str, str]:
        """The table as text in the forms that it is copied in."""
        with warnings.catch_warnings(
            action="ignore"
        ):  # a comment in it says what pdflatex cannot set
            return {"LaTeX": latex.to_latex(self.table), "CSV": comma_separated.to_csv(self.table)}


def best_first(metrics: Mapping[str, Result]) -> list[str]:
    """The order of systems on the whole page: by RSUM of their first protocol, the mean over seeds,
    the largest first.

    The names of results/metrics.json.
    """
    sums: dict[str, float] = {}
    for system in read_metrics(metrics):
        for name in system.systems if RSUM in system.values else ():
            sums.setdefault(name, system.mean(RSUM))
    for name, result in metrics.items():  # a lone head that is also an ensemble of one
        sums.setdefault(
            name, next((float(each[RSUM.metric]) for each in result.numbers.values()), 0.0)
        )
    return sorted(metrics, key=lambda name: -sums[name])


def headlines(metrics: Mapping[str, Result], bold: Bold = "tied") -> list[Headline]:
    """The tables of results, one for each test set and protocol. CxC's recalls, without an RSUM,
    have tables alone.
    """
    tables: dict[tuple[str, str, str, int, int], list[MeasuredSystem]] = {}
    order = best_first(metrics)
    for system in sorted(read_metrics(metrics), key=lambda system: order.index(system.systems[0])):
        o = system.origin
        if o.protocol != "cxc":
            tables.setdefault((o.dataset, o.split, o.protocol, o.images, o.captions), []).append(
                system
            )
    return [_headline(systems, metrics, bold) for systems in tables.values()]


def _headline(
    systems: Sequence[MeasuredSystem], metrics: Mapping[str, Result], bold: Bold
) -> Headline:
    competing = {
        index: system
        for index, system in enumerate(systems)
        if not (system.origin.section in (ZERO_SHOT, FINE_TUNED) or system.origin.transductive)
    }
    ranked = competing if len(competing) > 1 else {}  # a row without competitors is not the best
    best = {
        column: emphasis.best(
            {index: rounded(system.mean(column)) for index, system in ranked.items()}
        )
        for column in STATISTICS
    }
    tests = emphasis.PairedTests()
    if bold == "tied":
        tied = {
            column: first
            | tests.tied(
                {index: system.tested.get(column) for index, system in ranked.items()}, first
            )
            for column, first in best.items()
        }
        best = {
            column: first if len(first) == 1 or not tests.notes() else set()
            for column, first in tied.items()
        }
    notes = [TOLD if tests.notes() else BEST]
    if len(competing) < len(systems):
        notes.append(NEVER_BOLD)
    letters = tests.letters(
        {index: system.tested.get(RSUM) for index, system in enumerate(systems)}
    )
    if letters and bold == "tied":  # bold and letters never contradict each other
        best[RSUM] = {
            index
            for index in best[RSUM]
            if not any(
                set(letters[index]) & set(letters[other]) for other in ranked if other != index
            )
        }
    if letters:
        notes.append(Note(f"{emphasis.LETTERED}."))
    return Headline(
        systems[0].origin,
        [
            _row(
                system,
                metrics,
                {column for column in best if index in best[column]},
                letters.get(index, ""),
            )
            for index, system in enumerate(systems)
        ],
        notes if ranked or letters else [],
        remarks(systems),
    )


def _row(
    system: MeasuredSystem, metrics: Mapping[str, Result], best: Set[Statistic], letters: str
) -> HeadlineRow:
    o = system.origin
    shown = {
        column: replace(
            system.cell(column, _interval(system, column, metrics)),
            bold="black" if column in best else None,
        )
        for column in STATISTICS
    }
    encoder = system.members[0].encoder if len(system.members) == 1 else None
    visual, text = names.features(o.visual), "" if o.section else names.encoder(o.text)
    title = names.method(o.recipe, o.visual)
    if o.section:
        visual, title = system.label(), o.section
    if encoder:
        visual, title = str(encoder.get("title") or o.recipe), names.usage(encoder)
    languages = {
        name.direction: system.cell(name)
        for name in system.values
        if name.direction and name.metric == "mR"
    }
    return HeadlineRow(
        ", ".join((title, *o.steps)),
        text,
        visual,
        system.systems,
        shown,
        _ends(system, metrics),
        names.stand_ins(system.members),
        letters,
        languages,
        _published(system),
    )


def _published(system: MeasuredSystem) -> dict[Statistic, Cell]:
    """What a paper prints of the same method, features and text encoder on the test set of the
    system.
    """
    test_set = system.origin.benchmark
    for table in TABLES if test_set and not system.origin.steps else ():
        header = table.header(system)
        for row in table.published_rows()[0] if header and header.identity else []:
            numbers = {
                column: cell
                for column in STATISTICS
                if (cell := row.numbers.get((str(test_set), column))) and cell.number is not None
            }
            if header and row.header.identity == header.identity and numbers:
                return numbers
    return {}


def _ends(system: MeasuredSystem, metrics: Mapping[str, Result]) -> tuple[float, float]:
    """The interval of RSUM; over several seeds, or without an interval, the lowest and highest."""
    interval = _interval(system, RSUM, metrics)
    return (
        interval
        if interval and len(system.systems) == 1
        else (min(system.values[RSUM]), max(system.values[RSUM]))
    )


def _interval(
    system: MeasuredSystem, column: Statistic, metrics: Mapping[str, Result]
) -> tuple[float, float] | None:
    """The interval that `pipeline evaluate` wrote for one run; None where it wrote none."""
    interval = metrics[system.systems[0]].numbers[system.origin.protocol].get("interval")
    if not interval:
        return None
    low, high = at(interval, column)
    return float(low), float(high)
