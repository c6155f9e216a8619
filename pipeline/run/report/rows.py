"""Numbers as rows of a paper's table, alone or below the published rows of their benchmark."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pipeline.foundation.evaluation.metrics.base import RSUM, STATISTICS, at
from pipeline.foundation.evaluation.statistics import LETTERS
from pipeline.foundation.parts.wrapping import wrapped
from pipeline.judge.tables import evaluated, named_rows, text
from pipeline.judge.tables.bold import NEVER_BOLD
from pipeline.judge.tables.evaluated import Results
from pipeline.judge.tables.table import Cell, MetricKey, Note, Table, number
from pipeline.run.report import names
from pipeline.run.report.result_rows import Measured, ResultRow, RowHeader
from pipeline.run.report.retrieval_table import RetrievalTable, TableColumns
from pipeline.run.report.tables import rerank, vse2ad, vse_infty

# Published table -> how its rows are shown.
SHOWN = {
    shown.name: shown
    for shown in (
        vse2ad.TABLE1,
        rerank.TABLE1,
        vse_infty.TABLE10,
        vse_infty.TABLE4A,
        vse_infty.TABLE4B,
    )
}
SHEET = RetrievalTable(
    name="rows",
    caption="{data}, in percent.",
    measured=lambda system: None,
    columns=TableColumns(("Method",), (), (("i2t", "Image → Text"), ("t2i", "Text → Image"))),
)


def table(results: Results, beside: str | None = None, shows_bold: bool = True) -> Table:
    """Make a row of each result, in a panel for each test set and protocol.

    beside: the benchmark whose published rows are shown above, and by whose protocol all results
        are measured; alone, or with the methods whose rows these are, "flickr30k:VSE∞,VSE+2AD
        BERT".
    shows_bold: whether bold numbers can be told from others, and the caption says what they are.
    """
    published_benchmark = None
    printed: list[ResultRow] = []
    doubts: list[Note] = []
    if beside:
        published_benchmark = named_rows.benchmark(beside, "--beside")
        printed, doubts = _published(beside)
    pools: dict[str, list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)
    for system, numbers in results:
        pools[evaluated.title("", numbers)].append((system, numbers))
    sizes = {(numbers["images"], numbers["captions"]) for _, numbers in results}
    panels = []
    for title, results_of_pool in pools.items():
        test_set = ""
        data_set = title[:1].upper() + title[1:]
        if published_benchmark:
            test_set = published_benchmark.test_set
            data_set = f"{names.NAMES['test_sets'].get(test_set, beside)}, {title}"
        columns = replace(SHEET.columns, blocks=((test_set, ""),))
        if not published_benchmark:
            columns = _of_measured(columns, results_of_pool)
        rule = replace(SHEET.emphasis, is_said=shows_bold)
        sheet = replace(SHEET, data=data_set, columns=columns, emphasis=rule)
        rows = []
        for system, numbers in evaluated.over_seeds(results_of_pool):
            method = system or numbers.get("system") or "Ours"
            contender = evaluated.contender(numbers)
            cells = _cells(test_set, numbers)
            tested = {}
            for key in cells:
                inputs = contender.tested(key[1])
                if inputs:
                    tested[key] = inputs
            header = RowHeader((method,), competes=contender.competes)
            rows.append(ResultRow(header, cells, tested=tested))
        notes = list(_notes(results_of_pool))
        if shows_bold and not all(row.header.competes for row in rows):
            notes.append(Note(NEVER_BOLD))
        panel = sheet.panel(printed, Measured(rows, notes), doubts)
        _, first_result = results_of_pool[0]
        key_parts = [first_result.get("split"), first_result["protocol"]]
        if len(sizes) > 1:
            key_parts.append(f"{first_result['images']}x{first_result['captions']}")
        panel_key = "-".join(filter(None, key_parts))
        caption = evaluated.of_units(panel.caption, first_result)
        panels.append(replace(panel, key=panel_key, caption=caption))
    return Table("rows", tuple(panels))


def to_text(table: Table, strong: text.Strong = str) -> str:
    """Write the rows for a terminal.

    strong: writes a bold number.
    """
    lines_of_panels = []
    for panel in table.panels:
        lines_of_panels += [wrapped(panel.caption), "", *text.to_text(panel, strong)]
        # Marks are not shown, so their notes are not either.
        lines_of_panels += [wrapped(note.text, "  ") for note in panel.notes if not note.mark]
    return "\n".join(lines_of_panels)


def _of_measured(columns: TableColumns, results: Results) -> TableColumns:
    """The columns of the directions that are measured, in the words of the pool."""
    measured = evaluated.measured_by(results)
    directions = []
    for way, heading in columns.directions:
        if way not in {statistic.direction for statistic in measured}:
            continue
        if not evaluated.are_images(results[0][1]):
            heading = evaluated.task(results[0][1], way).title()
        directions.append((way, heading))
    return replace(columns, directions=tuple(directions), rsum=RSUM in measured)


def _cells(key: str, numbers: Mapping[str, Any]) -> dict[MetricKey, Cell]:
    """The cells of the recalls and RSUM that there are: a run of one direction has not all."""
    cells = {}
    for statistic in STATISTICS:
        measured = at(numbers, statistic)
        if measured is None:
            continue
        spread = None
        if "spread" in numbers:
            spread = at(numbers["spread"], statistic)
        cells[key, statistic] = number(measured, spread=spread)
    return cells


def _notes(results: Results) -> Iterator[Note]:
    for system, numbers in results:
        for remark in evaluated.remarks(numbers):
            yield Note(f"{system}: {remark}" if system else remark)
    if any(numbers.get("spread") for _, numbers in evaluated.over_seeds(results)):
        yield Note(evaluated.SPREAD)


def _published(beside: str) -> tuple[list[ResultRow], list[Note]]:
    """The published rows of a benchmark, or those of some methods, by paper and section, and the
    notes on doubtful cells.
    """
    benchmark = named_rows.benchmark(beside, "--beside")
    asked_rows = named_rows.chosen(beside, "--beside")
    shown_rows = []
    letters: dict[Note, str] = {}
    for paper, name in benchmark.tables.items():
        paper_table = SHOWN[name]
        assert paper_table.published is not None
        headers = {paper_table.published(asked.row) for asked in asked_rows if asked.paper == paper}
        rows, notes = paper_table.published_rows()
        note_of_mark = {note.mark: note for note in notes}
        for row in rows:
            if row.header in headers:
                cells = {k: cell for k, cell in row.numbers.items() if k[0] == benchmark.test_set}
                shown_row = ResultRow(_header(paper, paper_table, row.header), cells)
                shown_rows.append(_lettered(shown_row, note_of_mark, letters))
    return shown_rows, [replace(note, mark=letter) for note, letter in letters.items()]


def _lettered(row: ResultRow, notes: Mapping[str, Note], letters: dict[Note, str]) -> ResultRow:
    """The row with its notes' letters among all papers; notes that have none yet get the next."""
    lettered_cells = {}
    for key, cell in row.numbers.items():
        marks = []
        for mark in cell.marks:
            marks.append(letters.setdefault(notes[mark], LETTERS[len(letters)]))
        lettered_cells[key] = replace(cell, marks=tuple(marks))
    return replace(row, numbers=lettered_cells)


def _header(paper: str, paper_table: RetrievalTable, header: RowHeader) -> RowHeader:
    labels = paper_table.columns.labels
    method_column = labels.index("Method")
    other_labels = [
        label for column, label in enumerate(header.labels) if column != method_column and label
    ]
    method = header.labels[method_column]
    if other_labels:
        method += f" ({', '.join(other_labels)})"
    section = f"Published by {paper}"
    if header.section:
        section += f", {header.section}"
    return RowHeader((method,), section, header.group)
