"""VSE∞ Table 11 (appendix B.3): how well GPO's designs learn known pooling patterns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from pipeline.errors import InputError
from pipeline.report import emphasis, published
from pipeline.report.measured import Results
from pipeline.report.numerals import rounded, signed
from pipeline.report.table import Cell, Column, Note, Panel, RowGroup, Table, TableRow
from pipeline.report.table_request import TableRequest

PATTERNS = ("A", "M-1", "M-10", "T-50%", "L")
SIZES = ("rmse_seen", "rmse_unseen_smaller", "rmse_unseen_larger")
CELLS = [(pattern, "rmse_seen") for pattern in PATTERNS] + [(p, size) for p in PATTERNS for size in SIZES[1:]]
CAPTION = (
    "Error (RMSE) of generators of pooling coefficients on known patterns, after Table 11 of VSE∞: average (A), the "
    "mean of the 1 or 10 largest (M-1, M-10), of the largest half (T-50%), linearly falling weights (L). Seen sizes "
    "occur in training. Bold: the least of a column"
)

Design = tuple[str, str]
Errors = dict[tuple[str, str], Decimal]


def build(results: Results, request: TableRequest) -> Table:
    """Build the table.

    Args:
        results: What was measured; the table reads `results.synthetic`.
        request: Which rows are shown, and whether a last column shows the difference, measured minus published, in the
            mean of a row's 15 errors.

    Returns:
        The published rows, and below them the measured ones.

    Raises:
        InputError: If the errors are incomplete or no numbers.
    """
    printed = _by_design(row.cells for row in published.load("vse_infty_table11"))
    measured = _by_design(results.synthetic) if request.measured else {}
    delta = request.delta and bool(measured)
    groups = [_group(printed, "", {} if delta else None)] if request.published else []
    apart = ", of published and of measured rows apart" if request.published and measured else ""
    if measured:
        groups.append(_group(measured, "Measured here" if request.published else "", printed if delta else None))
    note = Note("Δ: measured minus published, in the mean of a row's errors; from the numbers as shown.")
    panel = Panel(_columns(delta), tuple(groups), f"{CAPTION}{apart}.", notes=(note,) * delta)
    return Table("vse_infty_table11", (panel,) * bool(groups))


def _columns(delta: bool) -> tuple[Column, ...]:
    seen = [Column(pattern, ("Seen sizes",)) for pattern in PATTERNS]
    unseen = [
        Column(size, ("Unseen sizes", pattern)) for pattern in PATTERNS for size in ("smaller", "larger")
    ]
    return (
        Column("Input Repr.", kind="text"),
        Column("Decoder", kind="text"),
        *seen,
        *unseen,
        *[Column("Δ")] * delta,
    )


def _by_design(rows: Iterable[Mapping[str, Any]]) -> dict[Design, Errors]:
    designs: dict[Design, Errors] = {}
    for row in rows:
        try:
            design, pattern = (str(row["input_repr"]), str(row["decoder"])), str(row["pattern"])
            errors = {(pattern, size): rounded(float(row[size]), places=3) for size in SIZES}
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"synthetic results cannot be read at {error}; run `pipeline synthetic` again"
            ) from None
        designs.setdefault(design, {}).update(errors)
    for design, found in designs.items():
        if missing := set(CELLS) - set(found):
            raise InputError(
                f"synthetic results of {design} lack {sorted(missing)[0]}; run `pipeline synthetic` again"
            )
    return designs


def _group(designs: Mapping[Design, Errors], title: str, bases: Mapping[Design, Errors] | None) -> RowGroup:
    best = {cell: emphasis.best({index: errors[cell] for index, errors in enumerate(designs.values())},
                                less_is_better=True) for cell in CELLS}
    rows = []
    for index, (design, errors) in enumerate(designs.items()):
        cells = [*map(Cell, design)]
        cells += [Cell(_shown(errors[c]), bold="black" if index in best[c] else None) for c in CELLS]
        if bases is not None:
            cells.append(Cell(_difference(errors, bases.get(design))))
        rows.append(TableRow(tuple(cells)))
    return RowGroup(tuple(rows), title)


def _shown(error: Decimal) -> str:
    """As the paper prints it: .065 for 0.065, and 0 for 0.000."""
    return str(error).removeprefix("0") if error else "0"


def _difference(errors: Errors, base: Errors | None) -> str:
    if base is None:
        return ""
    mean: Sequence[Decimal] = [errors[cell] - base[cell] for cell in CELLS]
    return signed(rounded(float(sum(mean, Decimal()) / len(mean)), places=3))
