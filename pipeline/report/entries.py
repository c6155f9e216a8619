"""The rows of a retrieval table: which published and measured numbers belong into which row."""

from __future__ import annotations

import string
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipeline.report.layout import Key
from pipeline.report.measured import Measured, Origin
from pipeline.report.networks import STAND_IN, stand_ins
from pipeline.report.numerals import Number, rounded, significant
from pipeline.report.published import COLUMNS, Inconsistency, PublishedRow
from pipeline.report.table import Note


@dataclass(frozen=True)
class Place:
    """Where a row stands.

    Attributes:
        labels: its text in the label columns.
        section: the heading above it.
        group: rows of one section and group stand together and compete for bold.
        system: what a measured and a published row must share to be compared; None compares with nothing.
    """

    labels: tuple[str, ...]
    section: str = ""
    group: str = ""
    system: Hashable = None


@dataclass(frozen=True)
class Entry:
    """One row: its place, its numbers by test set and column, the systems they come from."""

    place: Place
    numbers: dict[Key, Number] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    ratio: str = ""


def published_entries(
    rows: Iterable[PublishedRow], place: Callable[[PublishedRow], Place], shown: Sequence[str]
) -> tuple[list[Entry], list[Note]]:
    """Rows of a published table, those of one place in different test sets joined, and their notes.

    Each row in doubt carries a lettered note. `shown` are the columns of `COLUMNS` that the table has; a
    doubt about another column is left out.
    """
    entries: dict[Place, Entry] = {}
    notes: list[Note] = []
    for row in rows:
        doubts = [doubt for doubt in row.doubts if set(doubt.columns) & set(shown)]
        marks: dict[str, tuple[str, ...]] = {}
        for doubt in doubts:
            notes.append(Note(_doubt(doubt), mark=string.ascii_lowercase[len(notes)]))
            marks |= dict.fromkeys(doubt.columns, (notes[-1].mark,))
        where = place(row)
        entry = entries.setdefault(
            where, Entry(where, ratio=f"{row['oips']}×" if row.cells.get("oips") else "")
        )
        for column in COLUMNS:
            entry.numbers[row["dataset"], column] = Number(row.value(column), marks=marks.get(column, ()))
    return list(entries.values()), notes


def measured_entries(
    systems: Iterable[Measured],
    place: Callable[[Measured], Place | None],
    throughput: Mapping[str, float],
    test_set: str | None = None,
) -> list[Entry]:
    """Measured systems that have a place in the table, those of one place in different test sets joined.

    `test_set` names the test set of all of them; by default it is each one's own benchmark. Systems of one
    place that differ in their features or recipe stay apart, and their labels then name these.
    """
    found: dict[tuple[Place, str, str], Entry] = {}
    ratios = _ratios(throughput)
    for system in systems:
        if (where := place(system)) is None:
            continue
        origin = system.origin
        row = where, _features(origin), origin.recipe
        entry = found.get(row, Entry(where))
        data = test_set or origin.benchmark or ""
        found[row] = replace(
            entry,
            numbers=entry.numbers | {(data, column): _number(system, column) for column in COLUMNS},
            sources=(*entry.sources, *system.systems),
            marks=(STAND_IN,) if stand_ins(system) else (),
            ratio=ratios.get(f"{origin.recipe}-{origin.text}") or ratios.get(origin.recipe, ""),
        )
    return _told_apart(found)


def _number(system: Measured, column: str) -> Number:
    spread = system.spread(column)
    return Number(rounded(system.mean(column)), None if spread is None else rounded(spread))


def _told_apart(found: Mapping[tuple[Place, str, str], Entry]) -> list[Entry]:
    entries = []
    for (place, *told), entry in found.items():
        alike = [row[1:] for row in found if row[0] == place]
        differ = [text for text, other in zip(told, zip(*alike, strict=True), strict=True) if len(set(other)) > 1]
        *first, last = place.labels
        apart = replace(place, labels=(*first, f"{last} ({'; '.join(differ)})"))
        entries.append(replace(entry, place=apart) if differ else entry)
    return entries


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


def _ratios(throughput: Mapping[str, float]) -> dict[str, str]:
    """Items a second by system -> how many times the slowest of them, e.g. 4.9× or 147,000×."""
    slowest = min(throughput.values(), default=1.0)
    return {name: f"{significant(rate / slowest)}×" for name, rate in throughput.items()}
