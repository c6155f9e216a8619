"""The rows of a table of results, published and measured, and the notes on them below the table."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import groupby
from pathlib import Path

from pipeline.foundation.evaluation.metrics import Statistic
from pipeline.judge.systems.scores.made import GivenScores, Member
from pipeline.judge.tables.bold import TestedColumn
from pipeline.judge.tables.table import (
    MISSING,
    Cell,
    Colour,
    Column,
    MetricKey,
    Note,
    RowGroup,
    TableRow,
)
from pipeline.run.report import names
from pipeline.run.report.measured import MeasuredSystem, Origin
from pipeline.run.report.names import STAND_IN, stand_ins

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
    # A cell for each number; missing ones stay empty.
    numbers: dict[MetricKey, Cell] = field(default_factory=dict)
    # The systems in `results/metrics.json` that they come from; () for a published row.
    sources: tuple[str, ...] = ()
    # What paired tests of its numbers need.
    tested: dict[MetricKey, TestedColumn] = field(default_factory=dict)

    def tested_in(self, key: MetricKey) -> TestedColumn | None:
        """What paired tests of one of its numbers need, where that is known."""
        tested = self.tested.get(key)
        if tested is None:
            return None
        return replace(tested, competes=self.header.competes)


@dataclass(frozen=True)
class Measured:
    """The measured rows of a panel."""

    rows: Sequence[ResultRow] = ()
    notes: Sequence[Note] = ()  # the notes below the panel
    # What made the numbers, so that readers can check or repeat them.
    made_from: tuple[str, ...] = ()


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
        header = header_of(system)
        if header is None:
            continue
        origin = system.origin
        if origin.steps:
            header = _with_steps(header, origin.steps)
        row_key = (header, _features(origin), origin.recipe)
        row = rows.get(row_key, ResultRow(header))
        table_test_set = test_set or origin.benchmark or ""
        numbers = {(table_test_set, column): system.cell(column) for column in system.values}
        tested = {(table_test_set, column): inputs for column, inputs in system.tested.items()}
        if origin.recipe in ratios:
            numbers[RATIO] = Cell(ratios[origin.recipe], is_factor=True)
        rows[row_key] = ResultRow(
            _marked(header, system),
            row.numbers | numbers,
            (*row.sources, *system.systems),
            row.tested | tested,
        )
    distinguished = []
    for row_key, row in rows.items():
        rows_of_header = [other[1:] for other in rows if other[0] == row_key[0]]
        distinguished.append(_distinguished(row, row_key, rows_of_header))
    return distinguished


def _with_steps(header: RowHeader, steps: tuple[str, ...]) -> RowHeader:
    """The header of a system with steps after its ensemble, which its last label names."""
    *first, last = header.labels
    label = ", ".join((last, *steps))
    return replace(header, labels=(*first, label), identity=(header.identity, steps))


def _features(origin: Origin) -> str:
    """What made each feature of a system, in words."""
    engines_of_features = []
    for feature, made_by in origin.features:
        engine_of_feature = f"{feature}: {made_by}"
        if feature in origin.untrained:
            engine_of_feature += " untrained"
        engines_of_features.append(engine_of_feature)
    return ", ".join(engines_of_features)


def _marked(header: RowHeader, system: MeasuredSystem) -> RowHeader:
    """The header with the marks of a system's stand-ins and of transductive steps, which do not
    compete.
    """
    marks = []
    competes = header.competes and system.origin.competes
    if stand_ins(system.members):
        marks.append(STAND_IN)
    if system.origin.transductive:
        marks.append(TRANSDUCTIVE)
    return replace(header, marks=tuple(marks), competes=competes)


def _distinguished(
    row: ResultRow, key: tuple[RowHeader, str, str], alike: Sequence[tuple[str, str]]
) -> ResultRow:
    """A row whose last label names its features or recipe if these differ among the rows of its
    header.
    """
    differing = []
    for feature_or_recipe, of_rows_alike in zip(key[1:], zip(*alike, strict=True), strict=True):
        if len(set(of_rows_alike)) > 1:
            differing.append(feature_or_recipe)
    if not differing:
        return row
    *first, last = row.header.labels
    labels = (*first, f"{last} ({'; '.join(differing)})")
    return replace(row, header=replace(row.header, labels=labels))


def in_order(measured: Sequence[ResultRow], printed: Sequence[ResultRow]) -> list[ResultRow]:
    """Sort measured rows by the paper's sections, groups and systems; those that it lacks come
    last, as measured.
    """

    def sort_keys(row: ResultRow) -> list[Hashable]:
        header = row.header
        return [("section", header.section), ("group", header.group), ("identity", header.identity)]

    printed_order: dict[Hashable, int] = {}
    for row in (*printed, *measured):
        for sort_key in sort_keys(row):
            printed_order.setdefault(sort_key, len(printed_order))
    return sorted(
        measured, key=lambda row: [printed_order[sort_key] for sort_key in sort_keys(row)]
    )


def groups(
    rows: Sequence[ResultRow],
    columns: Sequence[Column],
    bold: Mapping[tuple[int, MetricKey], Colour],
    lead: str = "",
) -> Iterator[RowGroup]:
    """Rows in sections and groups."""
    section_before = None
    rows_of_sections = groupby(enumerate(rows), key=_place)
    for (section, _), section_rows in rows_of_sections:
        group = []
        for index, row in section_rows:
            cells = tuple(_cells(row, index, columns, bold))
            group.append(TableRow(cells, row.sources))
        title = ""
        if section != section_before:
            title = ": ".join(filter(None, (lead, section)))
        yield RowGroup(tuple(group), title)
        section_before = section


def _place(numbered: tuple[int, ResultRow]) -> tuple[str, str]:
    """The section and group of a row with its number."""
    _, row = numbered
    return row.header.section, row.header.group


def _cells(
    row: ResultRow,
    row_index: int,
    columns: Sequence[Column],
    bold: Mapping[tuple[int, MetricKey], Colour],
) -> Iterator[Cell]:
    """A row's cells; the label that names what was measured has the row's marks."""
    labels = [column.heading for column in columns[: len(row.header.labels)]]
    marked_label = len(labels) - 1
    for heading in ("Features", "Feature Type", "Method"):
        if heading in labels:
            marked_label = labels.index(heading)
            break
    for index, label in enumerate(row.header.labels):
        marks = row.header.marks if index == marked_label else ()
        yield Cell(label, marks=marks)
    for column in columns[len(labels) :]:
        missing = "" if column.key[1] in (DELTA, LETTERS) else MISSING
        cell = row.numbers.get(column.key, Cell(missing))
        yield replace(cell, bold=bold.get((row_index, column.key)))


def remarks(measured: Sequence[MeasuredSystem]) -> list[Note]:
    """Notes on measured rows: stand-ins, zero-shot and transductive ones, seeds."""
    notes = []
    members = _members(measured)
    stand_in_networks = sorted(stand_ins(members))
    if stand_in_networks:
        sentence = f"Not the papers' networks; stand-ins made these features: {', '.join(stand_in_networks)}."
        notes.append(Note(sentence, STAND_IN))
    notes += [Note(sentence) for sentence in _left_out(measured)]
    trained = _trained_by_others(members)
    if trained:
        sentence = (
            f"Zero-shot: models as they come, trained by others: {'; '.join(trained)}. Never bold."
        )
        notes.append(Note(sentence))
    given_scores = []
    for given in _given(members):
        file_names = [Path(file).name for file in given.files]
        given_scores.append(f"{given.title} ({', '.join(file_names)})")
    if given_scores:
        notes.append(
            Note(f"Given: scores that were computed elsewhere: {', '.join(given_scores)}.")
        )
    if any(system.origin.transductive for system in measured):
        notes.append(
            Note(
                "Rescored by the test queries together (transductive): a query's ranks depend on the others. "
                "Never bold.",
                TRANSDUCTIVE,
            )
        )
    seed_counts = sorted({len(system.systems) for system in measured} - {1})
    if seed_counts:
        how_many = " to ".join(map(str, dict.fromkeys((seed_counts[0], seed_counts[-1]))))
        notes.append(Note(f"±: mean and sample standard deviation over {how_many} seeds."))
    return notes


def _left_out(measured: Sequence[MeasuredSystem]) -> list[str]:
    """A sentence for each test set or pool of which something was left out."""
    incomplete = {}
    for system in measured:
        if system.origin.lacks:
            incomplete[system.origin] = system.origin
    return [
        f"Left out of {names.dataset(origin.dataset)} ({origin.split} split): {origin.lacks}."
        for origin in incomplete.values()
    ]


def _trained_by_others(members: Sequence[Member]) -> list[str]:
    """The dual encoders that were not fine-tuned here, each with the data of its training."""
    encoders = {member.head: member.encoder for member in members if member.encoder}
    trained_encoders = []
    for encoder_name, encoder in encoders.items():
        if not encoder.get("tuned_on"):
            training_data = encoder.get("trained_on") or "data that its files do not name"
            trained_encoders.append(f"{encoder.get('title') or encoder_name} on {training_data}")
    return trained_encoders


def _members(measured: Sequence[MeasuredSystem]) -> list[Member]:
    """The members of all systems, in order."""
    members: list[Member] = []
    for system in measured:
        members += system.members
    return members


def _given(members: Sequence[Member]) -> list[GivenScores]:
    """The given scores behind systems, each once."""
    by_head = {member.head: member.given for member in members}
    return [given for given in by_head.values() if given]


def made_from(measured: Sequence[MeasuredSystem]) -> list[str]:
    """What made the measured numbers of a panel. All settings are in metrics.json."""
    measured_on = []
    for system in measured:
        origin = system.origin
        measured_on.append(
            f"Test set: {origin.dataset}, {origin.split} split, {origin.images:,} images, {origin.captions:,} captions, "
            f"protocol {origin.protocol}, manifest {origin.manifest[:16]}."
        )
    for given in _given(_members(measured)):
        for file, digest in given.files.items():
            measured_on.append(f"Given: {given.title}: {file}, SHA-256 {digest}.")
    test_sets = list(dict.fromkeys(measured_on))
    methods_of_training: dict[str, dict[str, None]] = {}
    for system in measured:
        for member in system.members:
            if member.is_head:
                methods = methods_of_training.setdefault(_size(member), {})
                methods[names.method(system.origin.recipe)] = None
    if not methods_of_training:
        return test_sets
    trainings = list(methods_of_training)
    if len(methods_of_training) > 1:
        trainings = [
            f"{', '.join(methods)}: {size}" for size, methods in methods_of_training.items()
        ]
    return [*test_sets, f"Training: {'; '.join(trainings)}."]


def _size(member: Member) -> str:
    """E.g. `d = 1024, 25 epochs, batches of 128, learning rate 0.0005`, which may differ from the
    paper's.
    """
    settings = member.settings
    dimension = settings.get("dimension", "?")
    if member.published:
        return f"d = {dimension}, by its authors (published weights)"
    epochs, batch, learning_rate = (
        settings.get(key, "?") for key in ("epochs", "batch_size", "learning_rate")
    )
    return f"d = {dimension}, {epochs} epochs, batches of {batch}, learning rate {learning_rate}"
