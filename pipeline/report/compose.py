"""Retrieval tables: from rows and a layout to a `Table`.

The first panel has the paper's columns: its own rows, then, set apart, what was measured here on the same
test sets. Whatever was measured on other data follows in panels of its own, never under the paper's headings.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import groupby

from pipeline.report import names
from pipeline.report.emphasis import Rule
from pipeline.report.entries import Entry, Place, measured_entries
from pipeline.report.layout import Key, Layout
from pipeline.report.measured import Measured, elsewhere
from pipeline.report.numerals import signed
from pipeline.report.remarks import remarks
from pipeline.report.table import Cell, Colour, Note, Panel, Row, RowGroup, Table


@dataclass(frozen=True)
class Draft:
    """All that makes a table but what was measured.

    Attributes:
        name: the table's name; caption: what it shows; layout: its columns.
        published: its published rows; doubts: the notes that they carry.
        rule: what is bold.
        place: where a measured system stands, None for not in this table.
        throughput: items a second by recipe (or recipe-text), for a layout with ratios; method: how they were timed.
    """

    name: str
    caption: str
    layout: Layout
    published: Sequence[Entry]
    doubts: Sequence[Note]
    rule: Rule
    place: Callable[[Measured], Place | None]
    throughput: Mapping[str, float] = field(default_factory=dict)
    method: str = ""


def compose(draft: Draft, measured: Sequence[Measured], delta: bool = False) -> Table:
    """The table of `draft` with the systems of `measured` that have a place in it.

    With `delta`, a column after each test set holds the difference of a measured RSUM (where the table has
    none: of the sum of the recalls shown) to the published row of the same system, from the numbers as they
    are shown.
    """
    systems = [system for system in measured if draft.place(system)]
    here = [system for system in systems if system.origin.benchmark in dict(draft.layout.blocks)]
    others = (_other_panel(draft, members) for members in elsewhere(systems))
    return Table(draft.name, draft.caption, (_main_panel(draft, here, delta), *others))


def _main_panel(draft: Draft, here: Sequence[Measured], delta: bool) -> Panel:
    bases = {entry.place.system: entry for entry in draft.published if entry.place.system}
    measured = _in_order(measured_entries(here, draft.place, draft.throughput), draft.published)
    published = _groups(draft.published, draft.layout, draft.rule, bases={} if delta else None)
    groups = [
        *published,
        *_groups(measured, draft.layout, draft.rule, bases=bases if delta else None, lead="Measured here"),
    ]
    found = remarks(here, draft.layout, draft.throughput, draft.method, delta)
    return Panel(draft.layout.columns(delta), tuple(groups), notes=(*draft.doubts, *_bold_in_doubt(published), *found))


def _bold_in_doubt(published: Sequence[RowGroup]) -> list[Note]:
    """What bold follows, where a cell in doubt is set in it."""
    cells = (cell for group in published for row in group.rows for cell in row.cells)
    return [Note("Bold follows the cells as printed.")] if any(cell.bold and cell.marks for cell in cells) else []


def _other_panel(draft: Draft, systems: Sequence[Measured]) -> Panel:
    origin = systems[0].origin
    title = (
        f"Measured here on {names.DATASETS.get(origin.dataset, origin.dataset)}: {origin.split} split, "
        f"{origin.images:,} images, {origin.captions:,} captions "
        f"(manifest {origin.manifest[:8]}, protocol {origin.protocol})"
    )
    layout = replace(draft.layout, blocks=((title, ""),))
    measured = _in_order(
        measured_entries(systems, draft.place, draft.throughput, test_set=title), draft.published
    )
    groups = _groups(measured, layout, draft.rule, bases=None)
    notes = remarks(systems, layout, draft.throughput, draft.method, delta=False)
    return Panel(layout.columns(delta=False), tuple(groups), title, notes)


def _in_order(measured: Sequence[Entry], published: Sequence[Entry]) -> list[Entry]:
    """Measured rows in the order of the paper's sections, groups and systems; those that it lacks at the end, in the
    order in which they were measured."""
    ranks: dict[Hashable, int] = {}
    for entry in (*published, *measured):
        for part in _parts(entry.place):
            ranks.setdefault(part, len(ranks))
    return sorted(measured, key=lambda entry: [ranks[part] for part in _parts(entry.place)])


def _parts(place: Place) -> tuple[Hashable, ...]:
    return ("section", place.section), ("group", place.group), ("system", place.system)


def _groups(
    entries: Sequence[Entry],
    layout: Layout,
    rule: Rule,
    bases: Mapping[Hashable, Entry] | None,
    lead: str = "",
) -> list[RowGroup]:
    """Rows in sections and groups. `bases` are the published rows by system, for a column of differences;
    None for no such column."""
    bold = rule(entries, layout.numbers())
    groups, before = [], None
    indices = groupby(range(len(entries)), key=lambda i: (entries[i].place.section, entries[i].place.group))
    for (section, _), members in indices:
        rows = []
        for index in members:
            colours = {key: bold.get((index, key)) for key in layout.numbers()}
            rows.append(Row(_cells(entries[index], layout, colours, bases), entries[index].sources))
        title = " — ".join(filter(None, (lead, section))) if section != before else ""
        groups.append(RowGroup(tuple(rows), title))
        before = section
    return groups


def _cells(
    entry: Entry, layout: Layout, colours: Mapping[Key, Colour | None], bases: Mapping[Hashable, Entry] | None
) -> tuple[Cell, ...]:
    *labels, last = entry.place.labels
    cells = [*map(Cell, labels), Cell(last, marks=entry.marks)]
    for test_set, _ in layout.blocks:
        cells += [_cell(entry, (test_set, column), colours[test_set, column]) for column in layout.shown()]
        if bases is not None:
            base = None if entry.marks else bases.get(entry.place.system)  # a stand-in's is not the same system
            cells.append(Cell(_difference(entry, base, test_set, layout)))
    return (*cells, *[Cell(entry.ratio or "-")] * bool(layout.ratio))


def _cell(entry: Entry, key: Key, bold: Colour | None) -> Cell:
    number = entry.numbers.get(key)
    if number is None or number.value is None:
        return Cell("-", marks=number.marks if number else ())
    return Cell(str(number.value), "" if number.spread is None else str(number.spread), bold, number.marks)


def _difference(entry: Entry, base: Entry | None, test_set: str, layout: Layout) -> str:
    if base is None:
        return ""
    here, there = _sum(entry, test_set, layout), _sum(base, test_set, layout)
    return "" if here is None or there is None else signed(here - there)


def _sum(entry: Entry, test_set: str, layout: Layout) -> Decimal | None:
    columns = ("rsum",) if layout.rsum else layout.recalls()
    values = [number.value for column in columns if (number := entry.numbers.get((test_set, column)))]
    known = [value for value in values if value is not None]
    return sum(known, Decimal()) if len(known) == len(columns) else None
