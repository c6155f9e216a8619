"""Numbers as rows of a paper's table, alone or below the published rows of their benchmark."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.evaluation.metrics.numbers import STATISTICS, at
from pipeline.parts.errors import InputError
from pipeline.parts.wrapping import wrapped
from pipeline.report import evaluated, names, text
from pipeline.report.evaluated import Results
from pipeline.report.result_rows import Measured, ResultRow, RowHeader
from pipeline.report.retrieval_table import RetrievalTable, TableColumns
from pipeline.report.table import LETTERS, Cell, MetricKey, Note, Table, number
from pipeline.report.tables import rerank, vse2ad, vse_infty


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
    if (
        key := name.partition(":")[0].lower()
    ) not in BENCHMARKS:  # never "did you mean": that has other numbers
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
    known = benchmark(beside) if beside else None
    printed, doubts = _published(known, beside.partition(":")[2]) if known and beside else ([], [])
    alike: dict[str, list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)
    for name, numbers in results:
        alike[evaluated.title("", numbers)].append((name, numbers))
    panels = []
    for title, every in alike.items():
        test_set, first = known.test_set if known else "", every[0][1]
        data = (
            f"{names.NAMES['test_sets'].get(test_set, beside)}, {title}"
            if known
            else title[:1].upper() + title[1:]
        )
        sheet = replace(SHEET, data=data, columns=replace(SHEET.columns, blocks=((test_set, ""),)))
        rows = [
            ResultRow(RowHeader((name or each.get("system") or "Ours",)), _cells(test_set, each))
            for name, each in evaluated.over_seeds(every)
        ]
        panel = sheet.panel(printed, Measured(rows, [*_notes(every)]), doubts)
        panels.append(
            replace(panel, key="-".join(filter(None, (first.get("split"), first["protocol"]))))
        )
    return Table("rows", tuple(panels))


def to_text(table: Table, strong: text.Strong = str) -> str:
    """Write the rows for a terminal.

    strong: writes a bold number.
    """
    lines = []
    for panel in table.panels:
        lines += [wrapped(panel.caption), "", *text.to_text(panel, strong)]
        lines += [
            wrapped(note.text, "  ") for note in panel.notes if not note.mark
        ]  # marks are not shown
    return "\n".join(lines)


def _cells(key: str, numbers: Mapping[str, Any]) -> dict[MetricKey, Cell]:
    """The cells of the recalls and RSUM that there are: a run of one direction has not all."""
    found = {}
    for statistic in STATISTICS:
        if (value := at(numbers, statistic)) is not None:
            spread = at(numbers["spread"], statistic) if "spread" in numbers else None
            found[key, statistic] = number(value, spread=spread)
    return found


def _notes(results: Results) -> Iterator[Note]:
    for name, numbers in results:
        yield from (
            Note(": ".join(filter(None, (name, line)))) for line in evaluated.remarks(numbers)
        )
    if any("spread" in numbers for _, numbers in evaluated.over_seeds(results)):
        yield Note(evaluated.SPREAD)


def _published(known: Benchmark, methods: str) -> tuple[list[ResultRow], list[Note]]:
    """The published rows of a benchmark, by paper and section, and the notes on doubtful cells.

    methods: which rows, words of each with commas between, such as "VSE∞,VSE+2AD BERT"; "" for all.
    """
    every = [
        (ResultRow(_header(paper, printed, row.header), cells), {note.mark: note for note in notes})
        for paper, printed in known.tables.items()
        for rows, notes in [printed.published_rows()]
        for row in rows
        for cells in [{key: cell for key, cell in row.numbers.items() if key[0] == known.test_set}]
        if any(cell.number is not None for cell in cells.values())
    ]
    asked = {each.strip(): _words(each) for each in methods.split(",") if each.strip()}
    words = [
        _words(row.header.labels[0], row.header.section.partition(", ")[2]) for row, _ in every
    ]  # not its paper
    if lacking := [
        each for each, of_it in asked.items() if not any(of_it <= have for have in words)
    ]:
        there = dict.fromkeys(row.header.labels[0].partition(" (")[0] for row, _ in every)
        raise InputError(
            f"--beside: no published row has {lacking[0]!r}; there are {', '.join(there)}"
        )
    found, letters = [], dict[Note, str]()
    for (row, notes), have in zip(every, words, strict=True):
        if not asked or any(of_it <= have for of_it in asked.values()):
            found.append(
                replace(
                    row,
                    numbers={
                        key: replace(
                            cell,
                            marks=tuple(
                                letters.setdefault(notes[mark], LETTERS[len(letters)])
                                for mark in cell.marks
                            ),
                        )
                        for key, cell in row.numbers.items()
                    },
                )
            )
    return found, [replace(note, mark=letter) for note, letter in letters.items()]


def _words(*texts: str) -> set[str]:
    """The words by which a published row is asked for: of its method, features and text encoder."""
    return {word for text in texts for word in re.findall(r"[^\s(),:]+", text.lower())}


def _header(paper: str, printed: RetrievalTable, header: RowHeader) -> RowHeader:
    labels = printed.columns.labels
    place = labels.index("Method")
    others = [text for number, text in enumerate(header.labels) if number != place and text]
    method = header.labels[place] + (f" ({', '.join(others)})" if others else "")
    section = ", ".join(filter(None, (f"Published by {paper}", header.section)))
    return RowHeader((method,), section, header.group)
