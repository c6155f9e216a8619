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
    key = name.partition(":")[0].lower()
    if key not in BENCHMARKS:
        raise InputError(
            f"--beside {name}: no published rows of it are shipped; there are those of "
            f"{', '.join(BENCHMARKS)}; without --beside your rows are printed alone"
        )
    return BENCHMARKS[key]


def table(results: Results, beside: str | None = None) -> Table:
    """Make a row of each result, in a panel for each test set and protocol.

    beside: the benchmark whose published rows are shown above, and by whose protocol all results
        are measured; alone, or with the methods whose rows these are, "flickr30k:VSE∞,VSE+2AD
        BERT".
    """
    known = None
    printed: list[ResultRow] = []
    doubts: list[Note] = []
    if beside:
        known = benchmark(beside)
        printed, doubts = _published(known, beside.partition(":")[2])
    pools: dict[str, list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)
    for name, numbers in results:
        pools[evaluated.title("", numbers)].append((name, numbers))
    panels = []
    for title, pool in pools.items():
        test_set = ""
        data = title[:1].upper() + title[1:]
        if known:
            test_set = known.test_set
            data = f"{names.NAMES['test_sets'].get(test_set, beside)}, {title}"
        sheet = replace(SHEET, data=data, columns=replace(SHEET.columns, blocks=((test_set, ""),)))
        rows = []
        for name, numbers in evaluated.over_seeds(pool):
            label = name or numbers.get("system") or "Ours"
            rows.append(ResultRow(RowHeader((label,)), _cells(test_set, numbers)))
        panel = sheet.panel(printed, Measured(rows, list(_notes(pool))), doubts)
        first = pool[0][1]
        key = "-".join(filter(None, (first.get("split"), first["protocol"])))
        panels.append(replace(panel, key=key))
    return Table("rows", tuple(panels))


def to_text(table: Table, strong: text.Strong = str) -> str:
    """Write the rows for a terminal.

    strong: writes a bold number.
    """
    lines = []
    for panel in table.panels:
        lines += [wrapped(panel.caption), "", *text.to_text(panel, strong)]
        # Marks are not shown, so their notes are not either.
        lines += [wrapped(note.text, "  ") for note in panel.notes if not note.mark]
    return "\n".join(lines)


def _cells(key: str, numbers: Mapping[str, Any]) -> dict[MetricKey, Cell]:
    """The cells of the recalls and RSUM that there are: a run of one direction has not all."""
    cells = {}
    for statistic in STATISTICS:
        value = at(numbers, statistic)
        if value is None:
            continue
        spread = None
        if "spread" in numbers:
            spread = at(numbers["spread"], statistic)
        cells[key, statistic] = number(value, spread=spread)
    return cells


def _notes(results: Results) -> Iterator[Note]:
    for name, numbers in results:
        for line in evaluated.remarks(numbers):
            yield Note(f"{name}: {line}" if name else line)
    if any("spread" in numbers for _, numbers in evaluated.over_seeds(results)):
        yield Note(evaluated.SPREAD)


def _published(known: Benchmark, methods: str) -> tuple[list[ResultRow], list[Note]]:
    """The published rows of a benchmark, by paper and section, and the notes on doubtful cells.

    methods: which rows, words of each with commas between, such as "VSE∞,VSE+2AD BERT"; "" for all.
    """
    rows = list(_published_rows(known))
    words = []
    for row, _ in rows:
        # A row is asked for by all but its paper.
        section = row.header.section.partition(", ")[2]
        words.append(_words(row.header.labels[0], section))
    asked = {}
    for method in methods.split(","):
        if method.strip():
            asked[method.strip()] = _words(method)
    for method, wanted in asked.items():
        if not any(wanted <= row_words for row_words in words):
            there = dict.fromkeys(row.header.labels[0].partition(" (")[0] for row, _ in rows)
            raise InputError(
                f"--beside: no published row has {method!r}; there are {', '.join(there)}"
            )
    shown = []
    letters: dict[Note, str] = {}
    for (row, notes), row_words in zip(rows, words, strict=True):
        if not asked or any(wanted <= row_words for wanted in asked.values()):
            shown.append(_lettered(row, notes, letters))
    return shown, [replace(note, mark=letter) for note, letter in letters.items()]


def _published_rows(known: Benchmark) -> Iterator[tuple[ResultRow, Mapping[str, Note]]]:
    """The published rows with a number on a benchmark, and the notes of their paper by mark."""
    for paper, printed in known.tables.items():
        rows, notes = printed.published_rows()
        by_mark = {note.mark: note for note in notes}
        for row in rows:
            cells = {key: cell for key, cell in row.numbers.items() if key[0] == known.test_set}
            if any(cell.number is not None for cell in cells.values()):
                yield ResultRow(_header(paper, printed, row.header), cells), by_mark


def _lettered(row: ResultRow, notes: Mapping[str, Note], letters: dict[Note, str]) -> ResultRow:
    """The row with its notes' letters among all papers; notes that have none yet get the next."""
    numbers = {}
    for key, cell in row.numbers.items():
        marks = []
        for mark in cell.marks:
            marks.append(letters.setdefault(notes[mark], LETTERS[len(letters)]))
        numbers[key] = replace(cell, marks=tuple(marks))
    return replace(row, numbers=numbers)


def _words(*texts: str) -> set[str]:
    """The words by which a published row is asked for: of its method, features and text encoder."""
    words: set[str] = set()
    for label in texts:
        words.update(re.findall(r"[^\s(),:]+", label.lower()))
    return words


def _header(paper: str, printed: RetrievalTable, header: RowHeader) -> RowHeader:
    labels = printed.columns.labels
    place = labels.index("Method")
    others = [text for number, text in enumerate(header.labels) if number != place and text]
    method = header.labels[place]
    if others:
        method += f" ({', '.join(others)})"
    section = f"Published by {paper}"
    if header.section:
        section += f", {header.section}"
    return RowHeader((method,), section, header.group)
