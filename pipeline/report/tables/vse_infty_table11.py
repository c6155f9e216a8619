"""VSE∞ Table 11 (appendix B.3): how well GPO's designs learn known pooling patterns."""

from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.parts.errors import InputError
from pipeline.report import published
from pipeline.report.measured import Results
from pipeline.report.result_rows import ResultRow, RowHeader
from pipeline.report.retrieval_table import Layout
from pipeline.report.table import Note, Number, Table, TableRequest, rounded
from pipeline.report.table_columns import NumberColumn, TableColumns

PATTERNS = ("A", "M-1", "M-10", "T-50%", "L")
SIZES = {"smaller": "rmse_unseen_smaller", "larger": "rmse_unseen_larger"}
DATA = "synthetic"
LAYOUT = Layout(
    name="vse_infty_table11",
    caption="Error (RMSE) of generators of pooling coefficients on known patterns, after Table 11 of VSE∞: average "
    "(A), the mean of the 1 or 10 largest (M-1, M-10), of the largest half (T-50%), linearly falling weights (L). Seen "
    "sizes occur in training.",
    columns=TableColumns(("Input Repr.", "Decoder"), ((DATA, ""),), rsum=False, by_mean=True, single=(
        *(NumberColumn((DATA, f"{pattern} rmse_seen"), pattern, ("Seen sizes",), less_is_better=True)
          for pattern in PATTERNS),
        *(NumberColumn((DATA, f"{pattern} {column}"), size, ("Unseen sizes", pattern), less_is_better=True)
          for pattern in PATTERNS for size, column in SIZES.items()))),
)


def build(results: Results, request: TableRequest) -> Table:
    """Fill the table from `results.synthetic`. A column of differences is of the mean of a row's 15 errors."""
    printed = _rows(row.cells for row in published.load(LAYOUT.name))
    measured = _rows(results.synthetic) if request.measured else []
    delta = request.delta and bool(measured)
    note = Note("Δ: measured minus published, in the mean of a row's errors; from the numbers as shown.")
    panel = LAYOUT.panel(printed if request.published else [], measured, notes=(note,) * delta,
                         bases={row.header.identity: row for row in printed} if delta else None)
    return Table(LAYOUT.name, (panel,) * bool(panel.groups))


def _rows(lines: Iterable[Mapping[str, Any]]) -> list[ResultRow]:
    """A row for each design, from a line for each design and pattern."""
    rows: dict[RowHeader, ResultRow] = {}
    for line in lines:
        try:
            design, pattern = (str(line["input_repr"]), str(line["decoder"])), str(line["pattern"])
            numbers = {(DATA, f"{pattern} {size}"): _number(float(line[size]))
                       for size in ("rmse_seen", *SIZES.values())}
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"synthetic results cannot be read at {error}; run `pipeline synthetic` again") from None
        header = RowHeader(design, identity=design)
        rows.setdefault(header, ResultRow(header)).numbers.update(numbers)
    for header, row in rows.items():
        if missing := {column.key for column in LAYOUT.columns.numbers()} - row.numbers.keys():
            first = tuple(sorted(missing)[0][1].rsplit(" ", 1))
            raise InputError(f"synthetic results of {header.labels} lack {first}; run `pipeline synthetic` again")
    return list(rows.values())


def _number(error: float) -> Number:
    """As the paper prints it: .065 for 0.065, and 0 for 0.000."""
    value = rounded(error, places=3)
    return Number(value, text=str(value).removeprefix("0") if value else "0")
