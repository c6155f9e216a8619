"""VSE∞ Table 11 (appendix B.3): how well GPO's designs learn known pooling patterns."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipeline.parts.errors import InputError
from pipeline.report.measured import Results
from pipeline.report.published import PublishedRow
from pipeline.report.result_rows import Measured, ResultRow, RowHeader
from pipeline.report.retrieval_table import PaperTable, TableColumns
from pipeline.report.table import Cell, Column, MetricKey, rounded

PATTERNS = ("A", "M-1", "M-10", "T-50%", "L")
SIZES = {"smaller": "rmse_unseen_smaller", "larger": "rmse_unseen_larger"}
DATA = "synthetic"


class ErrorTable(PaperTable):
    """The table. A column of differences is of the mean of a row's 15 errors."""

    def printed_cells(self, row: PublishedRow) -> Mapping[MetricKey, tuple[str, Cell]]:
        """The errors on one pattern, see `PaperTable.printed_cells`."""
        return _errors(row.cells)

    def measure(self, results: Results, printed: Sequence[ResultRow]) -> Measured:
        """A row for each design of `results.synthetic`, see `PaperTable.measure`."""
        return Measured(list(self._designs(results.synthetic)))

    def _designs(self, lines: Iterable[Mapping[str, Any]]) -> Iterable[ResultRow]:
        """A row for each design, from a line for each design and pattern."""
        rows: dict[RowHeader, ResultRow] = {}
        for line in lines:
            try:
                row = rows.setdefault(header := _header(line), ResultRow(header))
                row.numbers.update({key: cell for key, (_, cell) in _errors(line).items()})
            except (KeyError, TypeError, ValueError) as error:
                raise InputError(f"synthetic results cannot be read at {error}; run `pipeline synthetic` "
                                 "again") from None
        for row in rows.values():
            if missing := {column.key for column in self.columns.numbers()} - row.numbers.keys():
                first = tuple(sorted(missing)[0][1].rsplit(" ", 1))
                raise InputError(f"synthetic results of {row.header.labels} lack {first}; run `pipeline synthetic` "
                                 "again")
        return rows.values()


def _header(line: Mapping[str, Any] | PublishedRow) -> RowHeader:
    design = str(line["input_repr"]), str(line["decoder"])
    return RowHeader(design, identity=design)


def _errors(line: Mapping[str, Any]) -> dict[MetricKey, tuple[str, Cell]]:
    """The errors as the paper prints them: .065 for 0.065, and 0 for 0.000."""
    values = {size: rounded(float(line[size]), places=3) for size in ("rmse_seen", *SIZES.values())}
    return {(DATA, f"{line['pattern']} {size}"): (
        size, Cell(str(value).removeprefix("0") if value else "0", value=value)) for size, value in values.items()}


TABLE11 = ErrorTable(
    name="vse_infty_table11", published=_header,
    caption="Error (RMSE) of generators of pooling coefficients on known patterns, after Table 11 of VSE∞: average "
    "(A), the mean of the 1 or 10 largest (M-1, M-10), of the largest half (T-50%), linearly falling weights (L). Seen "
    "sizes occur in training.",
    columns=TableColumns(("Input Repr.", "Decoder"), ((DATA, ""),), rsum=False, by_mean=True, single=(
        *(Column(pattern, ("Seen sizes",), key=(DATA, f"{pattern} rmse_seen"), less_is_better=True)
          for pattern in PATTERNS),
        *(Column(size, ("Unseen sizes", pattern), key=(DATA, f"{pattern} {column}"), less_is_better=True)
          for pattern in PATTERNS for size, column in SIZES.items()))),
)
