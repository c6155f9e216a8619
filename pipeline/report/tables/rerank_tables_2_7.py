"""Tables 2 and 7 of Geigle et al.: mean recall on Multi30K by language, trained on all languages or on English."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from pipeline.report import emphasis, names, published
from pipeline.report.measured import MeasuredSystem, Results, outside_benchmarks
from pipeline.report.networks import STAND_IN, stand_ins
from pipeline.report.numerals import Number, rounded
from pipeline.report.published import PublishedRow
from pipeline.report.remarks import made_from, remarks
from pipeline.report.table import MISSING, Cell, Column, Note, Panel, RowGroup, Table, TableRow
from pipeline.report.table_columns import TableColumns
from pipeline.report.table_request import TableRequest
from pipeline.report.throughput import Timing

LANGUAGES = ("en", "de", "fr", "cs")
TEST_SET = "multi30k"
COLUMNS = TableColumns(("Method",), ((TEST_SET, ""),), (), ())
SECTIONS = {"G1": "G1: before Transformers", "G2": "G2: cross-encoders", "G3": "G3: embeddings, and cooperative"}


@dataclass(frozen=True)
class Row:
    """A row of either table.

    Attributes:
        label: Its name.
        numbers: Language, or "mean" -> mR.
        section: The heading above it.
        marks: Its footnote marks.
        sources: The systems in `results/metrics.json` that its numbers come from.
    """

    label: str
    numbers: Mapping[str, Number]
    section: str = ""
    marks: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class LanguageTable:
    """A table of mR by language.

    Attributes:
        name: Its key in `TABLES` and the file of its published rows.
        after: What the caption says it follows, and what its systems are trained on.
        trained_on: The languages that a measured head must have been trained on; () for all.
        mean_of: Whether a language has a part in the mean.
        mean: Heading of the mean, and the published rows' column of it.
        notes: (Column, cell) of a published row -> the note that it has.
    """

    name: str
    after: str
    trained_on: tuple[str, ...]
    mean_of: Callable[[str], bool]
    mean: tuple[str, str]
    notes: Mapping[tuple[str, str], Note]

    def build(self, results: Results, request: TableRequest) -> Table:
        """Build the table.

        Args:
            results: What was measured.
            request: Which rows are shown. There are no differences, for no published system can be trained here.

        Returns:
            The published rows, below them the systems measured on Multi30K, and a panel for each other data set.
        """
        systems = [system for system in results.systems if request.measured and self._shows(system)]
        here = [system for system in systems if system.origin.benchmark == TEST_SET]
        printed = [self._published(row) for row in published.load(self.name)] if request.published else []
        measured = _groups(self._measured(here), LANGUAGES, "Measured here" if printed else "")
        groups, notes = (*_groups(printed, LANGUAGES), *measured), tuple(self.notes.values()) if printed else ()
        apart = ", of published and of measured rows apart" if printed and here else ""
        first = Panel(self._columns(LANGUAGES), groups, f"{self._caption('Multi30K')}{apart}.",
                      (*notes, *_remarks(here)), made_from=made_from(here, Timing()))
        return Table(self.name, (*[first] * bool(groups), *map(self._other, outside_benchmarks(systems))))

    def _caption(self, data: str) -> str:
        return f"Mean recall (mR) on {data} by language in percent, {self.after}. Bold: the best of a column"

    def _shows(self, system: MeasuredSystem) -> bool:
        """Heads trained on these languages, all alike."""
        trained = {tuple(member.settings.get("languages", ())) for member in system.members}
        return bool(_languages(system)) and trained == {self.trained_on}

    def _published(self, row: PublishedRow) -> Row:
        marks = tuple(note.mark for (column, cell), note in self.notes.items() if row[column] == cell)
        numbers = {name: Number(row.value(column)) for name, column in
                   (*((language, language) for language in LANGUAGES), ("mean", self.mean[1]))}
        return Row(_method(row), numbers, SECTIONS.get(row.cells.get("group", ""), ""), marks)

    def _measured(self, systems: Iterable[MeasuredSystem]) -> list[Row]:
        return [Row(_label(system), self._numbers(system), "", (STAND_IN,) if stand_ins(system) else (),
                    system.systems) for system in systems]

    def _numbers(self, system: MeasuredSystem) -> dict[str, Number]:
        by_language = {language: system.values[f"{language}_mR"] for language in _languages(system)}
        meant = [values for language, values in by_language.items() if self.mean_of(language)]
        means = [fmean(each) for each in zip(*meant, strict=True)]
        return {name: _over_seeds(values) for name, values in (*by_language.items(), ("mean", means)) if values}

    def _columns(self, languages: Sequence[str]) -> tuple[Column, ...]:
        return (Column("Method", kind="text"), *map(Column, languages), Column(self.mean[0]))

    def _other(self, systems: Sequence[MeasuredSystem]) -> Panel:
        origin = systems[0].origin
        data = (f"{names.DATASETS.get(origin.dataset, origin.dataset)} ({origin.split} split, {origin.images:,} "
                f"images, {origin.captions:,} captions)")
        languages = sorted(_languages(systems[0]), key=lambda name: (*LANGUAGES, name).index(name))
        return Panel(self._columns(languages), tuple(_groups(self._measured(systems), languages)),
                     f"{self._caption(data)}.", _remarks(systems), origin.dataset, made_from(systems, Timing()))


def _method(row: PublishedRow) -> str:
    """CE^M3P as CE (M3P): the file has a ^ before what the paper prints raised."""
    name, _, raised = row["method"].partition("^")
    return f"{name} ({raised})" if raised else name


def _languages(system: MeasuredSystem) -> list[str]:
    return [column.removesuffix("_mR") for column in system.values if column.endswith("_mR")]


def _label(system: MeasuredSystem) -> str:
    origin = system.origin
    return ", ".join((f"{names.method(origin.recipe, origin.visual)} ({names.features(origin.visual)}, "
                      f"{names.encoder(origin.text)})", *origin.steps))


def _over_seeds(values: Sequence[float]) -> Number:
    return Number(rounded(fmean(values)), rounded(stdev(values)) if len(values) > 1 else None)


def _remarks(systems: Sequence[MeasuredSystem]) -> tuple[Note, ...]:
    return remarks(systems, COLUMNS, Timing(), delta=False)


def _groups(rows: Sequence[Row], languages: Sequence[str], lead: str = "") -> list[RowGroup]:
    """Rows by section, the best of each column bold."""
    best = {name: emphasis.best({index: number.value for index, row in enumerate(rows)
                                 if (number := row.numbers.get(name)) and number.value is not None})
            for name in (*languages, "mean")}
    groups = []
    for section in dict.fromkeys(row.section for row in rows):
        found = [TableRow((Cell(row.label, marks=row.marks), *(_cell(row, name, index in best[name])
                                                               for name in (*languages, "mean"))), row.sources)
                 for index, row in enumerate(rows) if row.section == section]
        groups.append(RowGroup(tuple(found), lead or section))
    return groups


def _cell(row: Row, name: str, is_best: bool) -> Cell:
    number = row.numbers.get(name, Number())
    if number.value is None:
        return Cell(MISSING)
    return Cell(str(number.value), "" if number.spread is None else str(number.spread), "black" if is_best else None)


TABLE2 = LanguageTable(
    "rerank_table2",
    "after Table 2 of Geigle et al.; trained on captions in all languages",
    (), lambda language: True, ("Mean", "mean"),
    {("mark", "†"): Note("From the literature, as the paper says.", "a"),
     ("mark", "‡"): Note("The authors' own run.", "b")},
)
TABLE7 = LanguageTable(
    "rerank_table7",
    "after Table 7 of Geigle et al.; trained on English captions alone. The mean is of the other languages",
    ("en",), lambda language: language != "en", ("Mean without en", "avg_non_english"),
    {("from_literature", "1"): Note("From the literature, as the paper says.", "a")},
)
