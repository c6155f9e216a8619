"""Tables without recalls: of times, and of errors on known pooling patterns.

Tables 3 and 4 of Geigle et al. have the time of a query and of an evaluation; extrapolated times
are marked. Table 11 of VSE∞ (appendix B.3) shows how well GPO's designs learn known pooling
patterns.
"""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from pipeline.foundation.evaluation.metrics import Statistic
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.judge.tables.published import PublishedRow
from pipeline.judge.tables.table import Cell, MetricKey, Note, Panel, rounded
from pipeline.run.report.measured import Results
from pipeline.run.report.result_rows import Measured, ResultRow, RowHeader
from pipeline.run.report.retrieval_table import PaperTable
from pipeline.run.report.throughput import Latency, TimedQuery, read, scored_pairs

METHODS = ("EMB", "SEP/JOIN+CO", "CE")
# Sizes as the paper prints them -> images.
SIZES = {"1k": 1_000, "5k": 5_000, "50k": 50_000, "100k": 100_000, "1M": 1_000_000}
EXTRAPOLATED = "*"
# Unit, its seconds, and the smallest number of it that is printed in this unit.
UNITS = (
    ("a", 365.25 * 86400, 1.0),
    ("d", 86400.0, 3.0),
    ("h", 3600.0, 2.0),
    ("min", 60.0, 2.0),
    ("s", 1.0, 1.0),
    ("ms", 0.001, 0.0),
)
# Where the paper has no space, as in 36min, and the unbreakable one that is put there.
UNIT = re.compile(r"(?<=\d)(?=[a-z]+$)")
SPACE = "\u00a0"


@dataclass(frozen=True, kw_only=True)
class TimeTable(PaperTable):
    """One of the two tables of times."""

    # The column of times in the published file; COLUMN_seconds has the same times in seconds
    column: str
    # Measured seconds of a method and a number of images, and whether they are extrapolated.
    time: Callable[[Latency, str, int], tuple[float, bool] | None]
    extrapolated: str  # How measured times are extrapolated
    always: tuple[Note, ...] = ()  # Notes for all choices of rows

    def printed_cells(self, row: PublishedRow) -> Mapping[MetricKey, tuple[str, Cell]]:
        """A time, see `PaperTable.printed_cells`."""
        marks = (EXTRAPOLATED,) if row.cells.get("extrapolated") == "1" else ()
        key = (self.name, Statistic(row["n_images"], "time"))
        time = UNIT.sub(SPACE, row[self.column])
        return {key: (f"{self.column}_seconds", Cell(time, marks=marks))}

    def together(self, header: RowHeader) -> Hashable:
        """Rows of one machine are together."""
        return header.labels[1]

    def measure(self, results: Results, printed: Sequence[ResultRow]) -> Measured:
        """A row for each method, see `PaperTable.measure`. No rows if an earlier version timed
        other things.
        """
        if not results.throughput:
            return Measured()
        timed = read(results.throughput)
        if timed.latency is None:
            return Measured()
        machine = timed.made_with.get("machine", "")
        rows = []
        for method in METHODS:
            label = "EMB (BiGRU)" if method == "EMB" else method
            cells = self._times(timed.latency, method)
            rows.append(ResultRow(RowHeader((label, machine)), cells))
        notes = []
        if timed.query:
            notes.append(_note_on_query(timed.query))
        notes.append(Note(f"Extrapolated. {self.extrapolated}", EXTRAPOLATED))
        notes.append(Note(timed.methods.get("latency", "")))
        if timed.busy:
            notes.append(Note("Other work ran on the machine meanwhile; time it again."))
        return Measured(rows, notes)

    def _times(self, latency: Latency, method: str) -> dict[MetricKey, Cell]:
        """The cells of a method's times that were measured or extrapolated."""
        cells = {}
        for size in self.columns.shown():
            taken = self.time(latency, method, SIZES[size.direction])
            if taken is not None:
                seconds, is_extrapolated = taken
                marks = (EXTRAPOLATED,) if is_extrapolated else ()
                cells[self.name, size] = Cell(printed_time(seconds), marks=marks)
        return cells

    def panel(
        self,
        printed: Sequence[ResultRow],
        measured: Measured,
        doubts: Sequence[Note] = (),
        bases: Mapping[Hashable, ResultRow] | None = None,
    ) -> Panel:
        """Lay out the rows, see `PaperTable.panel`; published rows have their own note on
        extrapolation if needed.
        """
        notes = list(measured.notes)
        if not notes and any(map(_is_extrapolated, printed)):
            notes = [Note("Extrapolated, of published rows by the authors.", EXTRAPOLATED)]
        return super().panel(printed, replace(measured, notes=[*self.always, *notes]), doubts)


def _is_extrapolated(row: ResultRow) -> bool:
    return any(EXTRAPOLATED in cell.marks for cell in row.numbers.values())


def _note_on_query(query: TimedQuery) -> Note:
    """What one query took with the models of a run."""
    retrieved = printed_time(query.retrieve)
    reranked = printed_time(query.both)
    return Note(
        f"Measured with models of this run: one query among {query.images:,} images takes {retrieved} "
        f"by {query.retriever}, and {reranked} with its best {query.k} reranked by {query.scorer}: "
        f"{query.ratio:.1f} times."
    )


def printed_time(seconds: float) -> str:
    """A time as the paper prints it, with at most two significant digits below 10: 16 ms, 1.6 s, 36
    min, 2.4 h.
    """
    unit, seconds_of_unit, _ = next(row for row in UNITS if seconds >= row[1] * row[2])
    time_in_unit = seconds / seconds_of_unit
    if time_in_unit < 9.95:
        return f"{time_in_unit:.1f}{SPACE}{unit}"
    return f"{time_in_unit:,.0f}{SPACE}{unit}"


def _published_time(row: PublishedRow) -> RowHeader:
    return RowHeader((row["method"], row["hardware"]))


def _pairs(method: str) -> str:
    """How many pairs a method scores, by the sizes that the paper prints."""
    counts = [f"{scored_pairs(method, SIZES[size]):,}" for size in ("1k", "5k", "100k")]
    return f"{method} {', '.join(counts)}"


PAIRS = "; ".join(map(_pairs, METHODS[1:]))
TABLE3 = TimeTable.listed("rerank_table3", time=Latency.of_query, published=_published_time)
TABLE4 = TimeTable.listed(
    "rerank_table4",
    time=Latency.of_evaluation,
    published=_published_time,
    always=(Note(f"Pairs that are scored: {PAIRS}."),),
)


SYNTHETIC = "synthetic"
ERRORS = ("rmse_seen", "rmse_unseen_smaller", "rmse_unseen_larger")


@dataclass(frozen=True, kw_only=True)
class ErrorTable(PaperTable):
    """The table of errors. Its column of differences compares the means of a row's 15 errors."""

    def printed_cells(self, row: PublishedRow) -> Mapping[MetricKey, tuple[str, Cell]]:
        """The errors on one pattern, see `PaperTable.printed_cells`."""
        return _errors(row.cells)

    def measure(self, results: Results, printed: Sequence[ResultRow]) -> Measured:
        """A row for each design, from a line for each design and pattern, see
        `PaperTable.measure`.
        """
        rows: dict[RowHeader, ResultRow] = {}
        for line in results.synthetic:
            with refusing((KeyError, TypeError, ValueError), _unreadable):
                header = _design(line)
                row = rows.setdefault(header, ResultRow(header))
                for key, (_, cell) in _errors(line).items():
                    row.numbers[key] = cell
        expected = {column.key for column in self.columns.numbers()}
        for header, row in rows.items():
            missing = sorted(expected - row.numbers.keys())
            if missing:
                raise InputError(
                    f"results of {header.labels} lack {tuple(missing[0][1])}; run `pipeline lab "
                    "synthetic` again"
                )
        return Measured(list(rows.values()))


def _unreadable(error: Exception) -> str:
    return f"synthetic results cannot be read at {error}; run `pipeline lab synthetic` again"


def _design(line: Mapping[str, Any] | PublishedRow) -> RowHeader:
    design = str(line["input_repr"]), str(line["decoder"])
    return RowHeader(design, identity=design)


def _errors(line: Mapping[str, Any]) -> dict[MetricKey, tuple[str, Cell]]:
    """The errors, and 0 for 0.000 as the paper prints it."""
    cells = {}
    for size in ERRORS:
        error = rounded(float(line[size]), places=3)
        key = (SYNTHETIC, Statistic(str(line["pattern"]), size))
        cells[key] = (size, Cell(error or Decimal(0)))
    return cells


TABLE11 = ErrorTable.listed("vse_infty_table11", published=_design)
