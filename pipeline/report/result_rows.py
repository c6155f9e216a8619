"""The rows of a retrieval table: published and measured numbers, row by row."""

import string
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipeline.report.measured import MeasuredSystem, Origin
from pipeline.report.networks import STAND_IN, stand_ins
from pipeline.report.published import Inconsistency, PublishedRow
from pipeline.report.table import Note, Number, rounded
from pipeline.report.table_columns import MetricKey
from pipeline.report.throughput import Timing


@dataclass(frozen=True)
class RowHeader:
    """What a row is called and where it stands.

    Attributes:
        labels: Its text in the label columns.
        section: The heading above it, "" for none.
        group: Rows of one section and group stand together and compete for bold.
        identity: What a measured and a published row must share to be compared; None compares with nothing.
        competes: Whether its numbers may be bold; a bound's may not.
        marks: Footnote marks of its last label, each of a note of the table.
    """

    labels: tuple[str, ...]
    section: str = ""
    group: str = ""
    identity: Hashable = None
    competes: bool = True
    marks: tuple[str, ...] = ()


TRANSDUCTIVE = "‡"
"""The mark of a measured row whose scores a step changed by the test queries together. Such a row is never bold."""

ZERO_SHOT = "Zero-shot"
"""The section of dual encoders as they come. Such a row is never bold: it was trained on other data than the others."""


@dataclass(frozen=True)
class ResultRow:
    """One row of results, published or measured.

    Attributes:
        header: What it is called and where it stands.
        numbers: Test set and column -> the number.
        sources: The systems in `results/metrics.json` that the numbers come from; () for a published row.
        marks: Footnote marks of the whole row.
        ratio: Its throughput ratio as printed, "" for none.
    """

    header: RowHeader
    numbers: dict[MetricKey, Number] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    ratio: str = ""


def published_rows(
    rows: Iterable[PublishedRow], header_of: Callable[[PublishedRow], RowHeader], shown: Sequence[str]
) -> tuple[list[ResultRow], list[Note]]:
    """Join the lines of a published table that have one header; with a lettered note for each doubt about a column."""
    found: dict[RowHeader, ResultRow] = {}
    notes: dict[str, Note] = {}
    for row in rows:
        doubts = [doubt for doubt in row.doubts if set(doubt.columns) & set(shown)]
        marks: dict[str, tuple[str, ...]] = {}
        for doubt in doubts:
            text = _doubt(doubt)
            note = notes.setdefault(text, Note(text, mark=string.ascii_lowercase[len(notes)]))
            marks |= dict.fromkeys(doubt.columns, (note.mark,))
        header = header_of(row)
        joined = found.setdefault(
            header, ResultRow(header, marks=header.marks, ratio=f"{row['oips']}×" if row.cells.get("oips") else "")
        )
        for column in shown:
            joined.numbers[row["dataset"], column] = Number(row.value(column), marks=marks.get(column, ()))
    return list(found.values()), list(notes.values())


def measured_rows(
    systems: Iterable[MeasuredSystem],
    header_of: Callable[[MeasuredSystem], RowHeader | None],
    timing: Timing,
    test_set: str | None = None,
) -> list[ResultRow]:
    """Join the measurements of one system on different test sets.

    Systems of one header that differ in their features or recipe have rows of their own, and their labels name the
    difference. A system with steps after its ensemble names them, and is compared with no published row.
    """
    found: dict[tuple[RowHeader, str, str], ResultRow] = {}
    ratios = timing.ratios()
    for system in systems:
        if (header := header_of(system)) is None:
            continue
        origin = system.origin
        header = _with_steps(header, origin.steps)
        key = header, _features(origin), origin.recipe
        row = found.get(key, ResultRow(header))
        data = test_set or origin.benchmark or ""
        found[key] = replace(
            row,
            numbers=row.numbers | {(data, column): _number(system, column) for column in system.values},
            sources=(*row.sources, *system.systems),
            marks=(STAND_IN,) * bool(stand_ins(system)) + (TRANSDUCTIVE,) * origin.transductive,
            ratio=ratios.get(origin.recipe, ""),
        )
    return _name_differences(found)


def _with_steps(header: RowHeader, steps: tuple[str, ...]) -> RowHeader:
    if not steps:
        return header
    *first, last = header.labels
    return replace(header, labels=(*first, ", ".join((last, *steps))), identity=(header.identity, steps))


def _number(system: MeasuredSystem, column: str) -> Number:
    spread = system.spread(column)
    return Number(rounded(system.mean(column)), None if spread is None else rounded(spread))


def _name_differences(found: Mapping[tuple[RowHeader, str, str], ResultRow]) -> list[ResultRow]:
    """The rows; those with one header name their features or recipe where these differ."""
    rows = []
    for (header, *parts), row in found.items():
        alike = [key[1:] for key in found if key[0] == header]
        differ = [text for text, other in zip(parts, zip(*alike, strict=True), strict=True) if len(set(other)) > 1]
        *first, last = header.labels
        named = replace(header, labels=(*first, f"{last} ({'; '.join(differ)})"))
        rows.append(replace(row, header=named) if differ else row)
    return rows


def _features(origin: Origin) -> str:
    return ", ".join(
        f"{feature}: {engine}{' untrained' if feature in origin.untrained else ''}"
        for feature, engine in origin.features
    )


def _doubt(doubt: Inconsistency) -> str:
    if doubt.kind == "sum":
        return (
            f"As printed; the six recalls of this row sum to {doubt.computed}, "
            f"its RSUM is printed as {doubt.printed}. Probably meant: {doubt.believed}."
        )
    lead = "As printed; other papers disagree" if doubt.kind == "elsewhere" else "As printed; in doubt"
    return f"{lead}: {doubt.believed}."
