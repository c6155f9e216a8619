"""The table of results: each system's recalls and RSUM, with intervals or the deviation over seeds."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from pipeline.evaluation.metrics import RSUM, STATISTICS, Statistic
from pipeline.evaluation.metrics.numbers import at
from pipeline.provenance.results import Result
from pipeline.report import emphasis, names
from pipeline.report.measured import ZERO_SHOT, MeasuredSystem, Origin, read_metrics
from pipeline.report.retrieval_table import RetrievalTable
from pipeline.report.table import Bold, Cell, Note, rounded
from pipeline.report.tables.vse2ad import TABLE1 as MAIN
from pipeline.report.tables.vse_infty import TABLE9, TABLE10

# Tables of whole systems. If several print a system on a test set, the first one counts.
TABLES: tuple[RetrievalTable, ...] = (MAIN, TABLE9, TABLE10)
BEST = Note("Bold is the best of a column.")
# The note of the other tables, too.
NEVER_BOLD = Note("Zero-shot systems, and those rescored by the test queries together, are never bold.")


@dataclass(frozen=True)
class Counterpart:
    """A paper's numbers of a system on one test set."""

    test_set: str  # the papers' test set
    same: bool  # whether the system was measured on it, with the papers' networks
    numbers: Mapping[Statistic, Cell]


def counterparts(system: MeasuredSystem) -> list[Counterpart]:
    """Find the papers' numbers of the same method, features and text encoder."""
    by_test_set: dict[str, Counterpart] = {}
    for table in TABLES if not system.origin.steps else ():
        header = table.header(system)
        rows = table.published_rows()[0] if header and header.identity else []
        for row in rows:
            if header and row.header.identity == header.identity:
                for test_set in {key[0] for key in row.numbers} - by_test_set.keys():
                    numbers = {column: cell for column in STATISTICS
                               if (cell := row.numbers.get((test_set, column))) and cell.number is not None}
                    same = test_set == system.origin.benchmark and not names.stand_ins(system.members)
                    by_test_set[test_set] = Counterpart(test_set, same, numbers)
    return [by_test_set[test_set] for test_set in sorted(by_test_set)]


@dataclass(frozen=True)
class Span:
    """A row's RSUM on the table's scale, in percent of its width."""

    value: float  # RSUM
    low: float  # lower end of its interval, or of the range over seeds
    high: float  # upper end of it


@dataclass(frozen=True)
class HeadlineRow:
    """One system over its seeds."""

    method: str  # its method, and the steps after its ensemble
    text: str  # its text encoder, "" where no head made it
    visual: str  # its visual features; of a dual encoder or given system, which has none, its title
    systems: Sequence[str]  # its names in `results/metrics.json`, one a seed
    numbers: Mapping[Statistic, Cell]  # of `STATISTICS`; bold where it is the best of the table, or ties with it
    stand_ins: Sequence[str]  # networks that are not the papers'
    span: Span  # RSUM as it is drawn
    letters: str  # of its RSUM: rows that share one are not told apart; "" where rows are not tested
    languages: Mapping[str, Cell]  # language -> mR with captions in it alone, {} where captions are in one language
    published: Sequence[Counterpart] = ()  # the papers' numbers of the same system, by test set

    @property
    def by(self) -> str:
        """What is below its features: the method and the text encoder."""
        return ", ".join(filter(None, (self.method, self.text)))

    @property
    def same(self) -> Mapping[Statistic, Cell]:
        """The papers' numbers of it on the same test set with the same networks, {} for none."""
        return next((each.numbers for each in self.published if each.same), {})


@dataclass(frozen=True)
class Headline:
    """The results on one test set by one protocol."""

    origin: Origin  # of one of the systems: the data set, split and protocol, with numbers of images and captions
    rows: Sequence[HeadlineRow]  # the systems
    notes: Sequence[Note]  # what is bold

    @property
    def data(self) -> str:
        """The data set's name for readers."""
        return names.dataset(self.origin.dataset)

    @property
    def first(self) -> HeadlineRow:
        """The row of the largest RSUM."""
        return max(self.rows, key=lambda row: row.span.value)

    @property
    def elsewhere(self) -> list[tuple[HeadlineRow, str, Counterpart]]:
        """(row, test set, the papers' numbers of the row's system there), on other data or with other networks."""
        return [(row, names.NAMES["test_sets"].get(each.test_set, each.test_set), each)
                for row in self.rows for each in row.published if not each.same]

    @property
    def stand_ins(self) -> list[str]:
        """The stand-ins of all rows."""
        return sorted({stand_in for row in self.rows for stand_in in row.stand_ins})


def headlines(metrics: Mapping[str, Result], bold: Bold = "tied") -> list[Headline]:
    """The tables of results, one for each test set and protocol. CxC's recalls, without an RSUM, have tables alone."""
    tables: dict[tuple[str, str, str, int, int], list[MeasuredSystem]] = {}
    for system in read_metrics(metrics):
        o = system.origin
        if o.protocol == "cxc":
            continue
        tables.setdefault((o.dataset, o.split, o.protocol, o.images, o.captions), []).append(system)
    return [_headline(systems, metrics, bold) for systems in tables.values()]


def _headline(systems: Sequence[MeasuredSystem], metrics: Mapping[str, Result], bold: Bold) -> Headline:
    competing = {index: system for index, system in enumerate(systems)
                 if not (system.origin.section == ZERO_SHOT or system.origin.transductive)}
    ranked = competing if len(competing) > 1 else {}  # a row without competitors is not the best
    best = {column: emphasis.best({index: rounded(system.mean(column)) for index, system in ranked.items()})
            for column in STATISTICS}
    tests = emphasis.PairedTests()
    if bold == "tied":
        best = {column: first | tests.tied({index: system.tested.get(column) for index, system in ranked.items()},
                                           first) for column, first in best.items()}
    notes = list(tests.notes() or [BEST])
    if len(competing) < len(systems):
        notes.append(NEVER_BOLD)
    letters = tests.letters({index: system.tested.get(RSUM) for index, system in enumerate(systems)})
    if letters:
        notes.append(Note(f"{emphasis.LETTERED}."))
    return Headline(systems[0].origin, _rows(systems, metrics, best, letters), notes if ranked or letters else [])


def _rows(systems: Sequence[MeasuredSystem], metrics: Mapping[str, Result], best: Mapping[Statistic, Set[int]],
          letters: Mapping[int, str]) -> list[HeadlineRow]:
    ends = [_ends(system, metrics) for system in systems]
    least, most = min(low for low, _ in ends), max(high for _, high in ends)
    width = (most - least) or 1.0
    rows = []
    for index, (system, (low, high)) in enumerate(zip(systems, ends, strict=True)):
        o = system.origin
        span = Span(*(100 * (value - least) / width for value in (system.mean(RSUM), low, high)))
        shown = {column: replace(system.cell(column, _interval(system, column, metrics)),
                                 bold="black" if index in best[column] else None) for column in STATISTICS}
        encoder = system.members[0].encoder if len(system.members) == 1 else None
        visual, text = names.features(o.visual), "" if o.section else names.encoder(o.text)
        title = names.method(o.recipe, o.visual)
        if o.section:
            visual, title = system.label(), o.section.lower()
        if encoder:
            visual, title = str(encoder.get("title") or o.recipe), names.usage(encoder)
        languages = {name.direction: system.cell(name)
                     for name in system.values if name.direction and name.metric == "mR"}
        rows.append(HeadlineRow(", ".join((title, *o.steps)), text, visual, system.systems, shown,
                                names.stand_ins(system.members), span, letters.get(index, ""), languages,
                                counterparts(system)))
    return rows


def _ends(system: MeasuredSystem, metrics: Mapping[str, Result]) -> tuple[float, float]:
    """The interval of RSUM; over several seeds, or without an interval, the lowest and highest."""
    interval = _interval(system, RSUM, metrics)
    return interval if interval and len(system.systems) == 1 else (min(system.values[RSUM]),
                                                                     max(system.values[RSUM]))


def _interval(system: MeasuredSystem, column: Statistic, metrics: Mapping[str, Result]) -> tuple[float, float] | None:
    """The interval that `pipeline evaluate` wrote for one run; None where it wrote none."""
    interval = metrics[system.systems[0]].numbers[system.origin.protocol].get("interval")
    if not interval:
        return None
    low, high = at(interval, column)
    return float(low), float(high)
