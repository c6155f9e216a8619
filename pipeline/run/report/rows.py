"""Numbers as rows of a paper's table, alone or below the published rows of their benchmark."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.foundation.evaluation.metrics.base import STATISTICS, at
from pipeline.foundation.evaluation.statistics import LETTERS
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.parts.wrapping import wrapped
from pipeline.judge.tables import evaluated, text
from pipeline.judge.tables.evaluated import Results
from pipeline.judge.tables.table import Cell, MetricKey, Note, Table, number
from pipeline.run.report import names
from pipeline.run.report.result_rows import Measured, ResultRow, RowHeader
from pipeline.run.report.retrieval_table import RetrievalTable, TableColumns
from pipeline.run.report.tables import rerank, vse2ad, vse_infty


@dataclass(frozen=True)
class Benchmark:
    """A test set of which papers print numbers."""

    protocol: str  # The protocol that gives comparable numbers
    test_set: str  # Its key in the published tables
    tables: Mapping[str, RetrievalTable]  # Paper -> its table of whole systems


BENCHMARKS = {
    "flickr30k": Benchmark(
        "flickr30k_1k", "f30k_1k", {"VSE+2AD": vse2ad.TABLE1, "Geigle et al.": rerank.TABLE1}
    ),
    "coco_1k": Benchmark("coco_1k_5fold", "coco_1k_5fold", {"VSE+2AD": vse2ad.TABLE1}),
    "coco_5k": Benchmark(
        "coco_5k", "coco_5k", {"VSE∞": vse_infty.TABLE10, "Geigle et al.": rerank.TABLE1}
    ),
    "msrvtt": Benchmark("msrvtt_full", "msrvtt", {"VSE∞": vse_infty.TABLE4A}),
    "vatex": Benchmark("vatex_1500", "vatex", {"VSE∞": vse_infty.TABLE4B}),
}
SHEET = RetrievalTable(
    name="rows",
    caption="{data}, in percent.",
    measured=lambda system: None,
    columns=TableColumns(("Method",), (), (("i2t", "Image → Text"), ("t2i", "Text → Image"))),
)


def benchmark(name: str) -> Benchmark:
    """Look up the benchmark of NAME or NAME:METHOD,…."""
    # Never "did you mean": that one has other numbers.
    benchmark_name = name.partition(":")[0].lower()
    if benchmark_name not in BENCHMARKS:
        raise InputError(
            f"--beside {name}: no published rows of it are shipped; there are those of "
            f"{', '.join(BENCHMARKS)}; without --beside your rows are printed alone"
        )
    return BENCHMARKS[benchmark_name]


def table(results: Results, beside: str | None = None) -> Table:
    """Make a row of each result, in a panel for each test set and protocol.

    beside: the benchmark whose published rows are shown above, and by whose protocol all results
        are measured; alone, or with the methods whose rows these are, "flickr30k:VSE∞,VSE+2AD
        BERT".
    """
    published_benchmark = None
    printed: list[ResultRow] = []
    doubts: list[Note] = []
    if beside:
        published_benchmark = benchmark(beside)
        printed, doubts = _published(published_benchmark, beside.partition(":")[2])
    pools: dict[str, list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)
    for system, numbers in results:
        pools[evaluated.title("", numbers)].append((system, numbers))
    panels = []
    for title, results_of_pool in pools.items():
        test_set = ""
        data_set = title[:1].upper() + title[1:]
        if published_benchmark:
            test_set = published_benchmark.test_set
            data_set = f"{names.NAMES['test_sets'].get(test_set, beside)}, {title}"
        columns = replace(SHEET.columns, blocks=((test_set, ""),))
        sheet = replace(SHEET, data=data_set, columns=columns)
        rows = []
        for system, numbers in evaluated.over_seeds(results_of_pool):
            method = system or numbers.get("system") or "Ours"
            rows.append(ResultRow(RowHeader((method,)), _cells(test_set, numbers)))
        panel = sheet.panel(printed, Measured(rows, list(_notes(results_of_pool))), doubts)
        _, first_result = results_of_pool[0]
        panel_key = "-".join(filter(None, (first_result.get("split"), first_result["protocol"])))
        panels.append(replace(panel, key=panel_key))
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


def _published(printed_benchmark: Benchmark, methods: str) -> tuple[list[ResultRow], list[Note]]:
    """The published rows of a benchmark, by paper and section, and the notes on doubtful cells.

    methods: which rows, words of each with commas between, such as "VSE∞,VSE+2AD BERT"; "" for all.
    """
    published_rows = list(_published_rows(printed_benchmark))
    words_of_rows = []
    for row, _ in published_rows:
        # A row is asked for by all but its paper.
        section = row.header.section.partition(", ")[2]
        words_of_rows.append(_words(row.header.labels[0], section))
    asked_methods = {}
    for method in methods.split(","):
        if method.strip():
            asked_methods[method.strip()] = _words(method)
    for method, method_words in asked_methods.items():
        if not any(method_words <= row_words for row_words in words_of_rows):
            published_methods = dict.fromkeys(
                row.header.labels[0].partition(" (")[0] for row, _ in published_rows
            )
            raise InputError(
                f"--beside: no published row has {method!r}; there are {', '.join(published_methods)}"
            )
    shown_rows = []
    letters: dict[Note, str] = {}
    for (row, notes), row_words in zip(published_rows, words_of_rows, strict=True):
        is_asked = any(method_words <= row_words for method_words in asked_methods.values())
        if is_asked or not asked_methods:
            shown_rows.append(_lettered(row, notes, letters))
    return shown_rows, [replace(note, mark=letter) for note, letter in letters.items()]


def _published_rows(printed_benchmark: Benchmark) -> Iterator[tuple[ResultRow, Mapping[str, Note]]]:
    """The published rows with a number on a benchmark, and the notes of their paper by mark."""
    test_set = printed_benchmark.test_set
    for paper, paper_table in printed_benchmark.tables.items():
        rows, notes = paper_table.published_rows()
        note_of_mark = {note.mark: note for note in notes}
        for row in rows:
            cells = {key: cell for key, cell in row.numbers.items() if key[0] == test_set}
            if any(cell.number is not None for cell in cells.values()):
                yield ResultRow(_header(paper, paper_table, row.header), cells), note_of_mark


def _lettered(row: ResultRow, notes: Mapping[str, Note], letters: dict[Note, str]) -> ResultRow:
    """The row with its notes' letters among all papers; notes that have none yet get the next."""
    lettered_cells = {}
    for key, cell in row.numbers.items():
        marks = []
        for mark in cell.marks:
            marks.append(letters.setdefault(notes[mark], LETTERS[len(letters)]))
        lettered_cells[key] = replace(cell, marks=tuple(marks))
    return replace(row, numbers=lettered_cells)


def _words(*labels: str) -> set[str]:
    """The words by which a published row is asked for: of its method, features and text encoder."""
    words: set[str] = set()
    for label in labels:
        words.update(re.findall(r"[^\s(),:]+", label.lower()))
    return words


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
