"""The rows of a table of results, published and measured, and the notes on them below the table."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import groupby
from pathlib import Path

from pipeline.evaluation.metrics import Statistic
from pipeline.report import names
from pipeline.report.measured import MeasuredSystem, TestedColumn
from pipeline.report.names import STAND_IN, stand_ins
from pipeline.report.table import MISSING, Cell, Colour, Column, MetricKey, Note, RowGroup, TableRow
from pipeline.systems.scores.made import GivenScores, Member

# The mark of a measured row with a step that used all test queries together. Such a row is never
# bold.
TRANSDUCTIVE = "‡"
# The key of the column of throughput.
RATIO = "", Statistic("", "ratio")
# The key of the column with differences of measured and published numbers, instead of a metric.
DELTA = Statistic("", "delta")
# The key of the column with letters of groups.
LETTERS = Statistic("", "letters")


@dataclass(frozen=True)
class RowHeader:
    """A row's labels and its place in the table."""

    labels: tuple[str, ...]  # Its text in the label columns
    section: str = ""  # The heading above it, "" for none
    group: str = ""  # Rows of one section and group stand together and compete for bold
    # A measured and a published row are compared if theirs are equal; None compares with nothing.
    identity: Hashable = None
    competes: bool = True  # Whether its numbers may be bold; those of an upper bound may not
    # Footnote marks of the label that names what was measured; each has a note below the table.
    marks: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResultRow:
    """One row of results, published or measured."""

    header: RowHeader  # its labels and its place in the table
    numbers: dict[MetricKey, Cell] = field(
        default_factory=dict
    )  # a cell for each number; missing ones stay empty
    sources: tuple[
        str, ...
    ] = ()  # the systems in `results/metrics.json` that they come from; () for a published row
    tested: dict[MetricKey, TestedColumn] = field(
        default_factory=dict
    )  # what paired tests of its numbers need


@dataclass(frozen=True)
class Measured:
    """The measured rows of a panel."""

    rows: Sequence[ResultRow] = ()
    notes: Sequence[Note] = ()  # the notes below the panel
    made_from: tuple[
        str, ...
    ] = ()  # what made the numbers, so that readers can check or repeat them


def measured_rows(
    systems: Iterable[MeasuredSystem],
    header_of: Callable[[MeasuredSystem], RowHeader | None],
    ratios: Mapping[str, Decimal],
    test_set: str | None = None,
) -> list[ResultRow]:
    """Join the measurements of one system on different test sets.

    Systems of one header that differ in their features or recipe have rows of their own, and their
    labels name the difference. The label of a system with steps after its ensemble names these; no
    published row is compared with it.
    """
    rows: dict[tuple[RowHeader, str, str], ResultRow] = {}
    for system in systems:
        if (header := header_of(system)) is None:
            continue
        origin = system.origin
        if origin.steps:
            *first, last = header.labels
            header = replace(
                header,
                labels=(*first, ", ".join((last, *origin.steps))),
                identity=(header.identity, origin.steps),
            )
        made_by = ", ".join(
            f"{feature}: {engine}{' untrained' if feature in origin.untrained else ''}"
            for feature, engine in origin.features
        )
        row = rows.get(key := (header, made_by, origin.recipe), ResultRow(header))
        where = test_set or origin.benchmark or ""
        numbers = {(where, column): system.cell(column) for column in system.values}
        tested = {(where, column): each for column, each in system.tested.items()}
        if origin.recipe in ratios:
            numbers[RATIO] = Cell(ratios[origin.recipe], is_factor=True)
        marks = [STAND_IN] if stand_ins(system.members) else []
        if origin.transductive:
            marks.append(TRANSDUCTIVE)
        shown = replace(
            header, marks=tuple(marks), competes=header.competes and not origin.transductive
        )
        rows[key] = ResultRow(
            shown, row.numbers | numbers, (*row.sources, *system.systems), row.tested | tested
        )
    return [
        _distinguished(row, key, [other[1:] for other in rows if other[0] == key[0]])
        for key, row in rows.items()
    ]


def _distinguished(
    row: ResultRow, key: tuple[RowHeader, str, str], alike: Sequence[tuple[str, str]]
) -> ResultRow:
    """A row whose last label names its features or recipe if these differ among the rows of its
    header.
    """
    differ = [
        text
        for text, values in zip(key[1:], zip(*alike, strict=True), strict=True)
        if len(set(values)) > 1
    ]
    *first, last = row.header.labels
    labels = (*first, f"{last} ({'; '.join(differ)})" if differ else last)
    return replace(row, header=replace(row.header, labels=labels))


def in_order(measured: Sequence[ResultRow], printed: Sequence[ResultRow]) -> list[ResultRow]:
    """Sort measured rows by the paper's sections, groups and systems; those that it lacks come
    last, as measured.
    """

    def parts(row: ResultRow) -> list[Hashable]:
        return [
            ("section", row.header.section),
            ("group", row.header.group),
            ("identity", row.header.identity),
        ]

    ranks: dict[Hashable, int] = {}
    for part in (part for row in (*printed, *measured) for part in parts(row)):
        ranks.setdefault(part, len(ranks))
    return sorted(measured, key=lambda row: [ranks[part] for part in parts(row)])


def groups(
    rows: Sequence[ResultRow],
    columns: Sequence[Column],
    bold: Mapping[tuple[int, MetricKey], Colour],
    lead: str = "",
) -> Iterator[RowGroup]:
    """Rows in sections and groups."""
    before = None
    for (section, _), members in groupby(
        enumerate(rows), lambda row: (row[1].header.section, row[1].header.group)
    ):
        table_rows = tuple(
            TableRow(tuple(_cells(row, index, columns, bold)), row.sources)
            for index, row in members
        )
        yield RowGroup(
            table_rows, ": ".join(filter(None, (lead, section))) if section != before else ""
        )
        before = section


def _cells(
    row: ResultRow,
    place: int,
    columns: Sequence[Column],
    bold: Mapping[tuple[int, MetricKey], Colour],
) -> Iterator[Cell]:
    """A row's cells; the label that names what was measured has the row's marks."""
    labels = [column.heading for column in columns[: len(row.header.labels)]]
    marked = next(
        (labels.index(name) for name in ("Features", "Feature Type", "Method") if name in labels),
        len(labels) - 1,
    )
    for index, label in enumerate(row.header.labels):
        yield Cell(label, marks=row.header.marks if index == marked else ())
    for column in columns[len(labels) :]:
        cell = row.numbers.get(
            column.key, Cell("" if column.key[1] in (DELTA, LETTERS) else MISSING)
        )
        yield replace(cell, bold=bold.get((place, column.key)))


def remarks(measured: Sequence[MeasuredSystem]) -> list[Note]:
    """Notes on measured rows: stand-ins, zero-shot and transductive ones, seeds."""
    notes = []
    if made := sorted(stand_ins(member for system in measured for member in system.members)):
        notes.append(
            Note(
                f"Not the papers' networks; stand-ins made these features: {', '.join(made)}.",
                STAND_IN,
            )
        )
    for origin in {
        system.origin: system.origin for system in measured if system.origin.lacks
    }.values():
        notes.append(
            Note(
                f"Left out of {names.dataset(origin.dataset)} ({origin.split} split): {origin.lacks}."
            )
        )
    encoders = {
        member.head: member.encoder
        for system in measured
        for member in system.members
        if member.encoder
    }
    trained = [
        f"{encoder.get('title') or name} on {encoder.get('trained_on') or 'data that its files do not name'}"
        for name, encoder in encoders.items()
        if not encoder.get("tuned_on")
    ]
    if trained:
        notes.append(
            Note(
                f"Zero-shot: models as they come, trained by others: {'; '.join(trained)}. Never bold."
            )
        )
    if given := _given(measured):
        files = [
            f"{each.title} ({', '.join(Path(file).name for file in each.files)})" for each in given
        ]
        notes.append(Note(f"Given: scores that were computed elsewhere: {', '.join(files)}."))
    if any(system.origin.transductive for system in measured):
        notes.append(
            Note(
                "Rescored by the test queries together (transductive): a query's ranks depend on the others. "
                "Never bold.",
                TRANSDUCTIVE,
            )
        )
    if seeds := sorted({len(system.systems) for system in measured} - {1}):
        how_many = " to ".join(map(str, dict.fromkeys((seeds[0], seeds[-1]))))
        notes.append(Note(f"±: mean and sample standard deviation over {how_many} seeds."))
    return notes


def _given(measured: Iterable[MeasuredSystem]) -> list[GivenScores]:
    """The given scores behind systems, each once."""
    members = {member.head: member.given for system in measured for member in system.members}
    return [given for given in members.values() if given]


def made_from(measured: Sequence[MeasuredSystem]) -> list[str]:
    """What made the measured numbers of a panel. All settings are in metrics.json."""
    sets = dict.fromkeys(
        f"Test set: {o.dataset}, {o.split} split, {o.images:,} images, {o.captions:,} captions, protocol {o.protocol}, "
        f"manifest {o.manifest[:16]}."
        for o in (system.origin for system in measured)
    )
    sets |= {
        f"Given: {each.title}: {file}, SHA-256 {digest}.": None
        for each in _given(measured)
        for file, digest in each.files.items()
    }
    sizes: dict[str, dict[str, None]] = {}
    for system in measured:
        for member in system.members:
            if member.is_head:
                sizes.setdefault(_size(member), {})[names.method(system.origin.recipe)] = None
    sentences = (
        sizes
        if len(sizes) == 1
        else [f"{', '.join(methods)}: {size}" for size, methods in sizes.items()]
    )
    if not sizes:
        return [*sets]
    return [*sets, f"Training: {'; '.join(sentences)}."]


def _size(member: Member) -> str:
    """E.g. `d = 1024, 25 epochs, batches of 128, learning rate 0.0005`, which may differ from the
    paper's.
    """
    settings = member.settings
    if member.published:
        return f"d = {settings.get('dimension', '?')}, by its authors (published weights)"
    d, epochs, batch, rate = (
        settings.get(key, "?") for key in ("dimension", "epochs", "batch_size", "learning_rate")
    )
    return f"d = {d}, {epochs} epochs, batches of {batch}, learning rate {rate}"
