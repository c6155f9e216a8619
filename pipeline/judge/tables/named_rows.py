"""The papers' rows by name: a benchmark, a colon, and words of the method, its features and its
text encoder, "flickr30k:VSE∞ RG bert".
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from pipeline.foundation.evaluation.metrics.base import STATISTICS
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.judge.tables import published
from pipeline.judge.tables.published import PublishedRow

EXAMPLE = "'flickr30k:VSE∞ RG bert'"
# Rows that a message lists.
LISTED = 3
# The marks of Geigle et al.'s rows, as words of a name.
MARKS = {"†": "literature", "‡": "own run"}
# How ∞ and ++ are typed at the end of a word: VSEinf, vse_infty, vse_pp.
APART = r"(?<=\w)\s+(?=(infinity|infty|inf|∞|pp|plusplus|\+\+)(\s|,|$))"  # VSE infinity, VSE ++
TYPED = {r"[_-]?(infinity|infty|inf)$": "∞", r"[_-]?(pp|plusplus)$": "++"}


@dataclass(frozen=True)
class Benchmark:
    """A test set of which papers print numbers."""

    protocol: str  # The protocol that gives comparable numbers
    test_set: str  # Its key in the published tables
    tables: Mapping[str, str]  # Paper -> its published table of whole systems


BENCHMARKS = {
    "flickr30k": Benchmark(
        "flickr30k_1k", "f30k_1k", {"VSE+2AD": "vse2ad_table1", "Geigle et al.": "rerank_table1"}
    ),
    "coco_1k": Benchmark("coco_1k_5fold", "coco_1k_5fold", {"VSE+2AD": "vse2ad_table1"}),
    "coco_5k": Benchmark(
        "coco_5k", "coco_5k", {"VSE∞": "vse_infty_table10", "Geigle et al.": "rerank_table1"}
    ),
    "msrvtt": Benchmark("msrvtt_full", "msrvtt", {"VSE∞": "vse_infty_table4a"}),
    "vatex": Benchmark("vatex_1500", "vatex", {"VSE∞": "vse_infty_table4b"}),
}


@dataclass(frozen=True)
class NamedRow:
    """A published row of a benchmark."""

    paper: str  # Its paper's title in `Benchmark.tables`
    row: PublishedRow

    @property
    def name(self) -> str:
        """What it is asked for by, after the benchmark: "VSE∞ RG bert"."""
        cells = [self.row.label]
        for column in ("visual_feature", "backbone", "text_encoder", "group", "mark"):
            cell = self.row.cells.get(column, "")
            cells.append(MARKS.get(cell, cell))
        if self.row["ensemble"] == "1" and len(self.row["visual_feature"]) < 2:
            cells.append("ensemble")
        return " ".join(filter(None, cells))

    @property
    def typed(self) -> str:
        """Its name and its numbers, as `pipeline explain --published` takes either."""
        numbers = []
        for statistic in STATISTICS:
            printed_number = self.row.value(statistic)
            if printed_number is not None:
                numbers.append(f"{str(statistic).replace(' ', '_')}={printed_number}")
        return f"{self.name} ({','.join(numbers)})"


def benchmark(name: str, option: str) -> Benchmark:
    """Look up the benchmark of NAME or NAME:METHOD,….

    option: the option that names it, for the message.
    """
    # Never "did you mean": that one has other numbers.
    benchmark_name = name.partition(":")[0].strip().lower()
    if benchmark_name not in BENCHMARKS:
        raise InputError(
            f"{option} {name}: no published rows of it are shipped; there are those of "
            f"{', '.join(BENCHMARKS)}"
        )
    return BENCHMARKS[benchmark_name]


def of_benchmark(printed_benchmark: Benchmark) -> list[NamedRow]:
    """The published rows of a benchmark that print a recall."""
    rows = []
    for paper, table in printed_benchmark.tables.items():
        for row in published.load(table):
            is_of_benchmark = row["dataset"] == printed_benchmark.test_set
            if is_of_benchmark and any(row.value(recall) is not None for recall in STATISTICS):
                rows.append(NamedRow(paper, row))
    return rows


def chosen(name: str, option: str) -> list[NamedRow]:
    """The published rows of NAME, all of them, or of NAME:METHOD,METHOD, those of some methods.

    A method chooses the rows that have all its words; the rows that have no other words, if there
    are any. option: the option that names them, for the message.
    """
    rows = of_benchmark(benchmark(name, option))
    methods = [method.strip() for method in name.partition(":")[2].split(",")]
    asked_rows = []
    for method in filter(None, methods):
        matching_rows = _matching(rows, method)
        if not matching_rows:
            nearest_rows = _nearest(rows, method)
            raise InputError(
                f"{option} {name}: no published row has {method!r}; the nearest: {_listed(nearest_rows)}"
            )
        asked_rows += matching_rows
    if not asked_rows:
        return rows
    return [row for row in rows if row in asked_rows]


def one(name: str, option: str) -> PublishedRow:
    """The published row of NAME:METHOD, of which there must be one alone."""
    rows = chosen(name, option)
    if len(rows) > 1:
        raise InputError(
            f"{option} {name}: {counted(len(rows), 'published row')} are of it; name one by more words, such "
            f"as: {_listed(rows)}"
        )
    return rows[0].row


def protocol_of(row: PublishedRow) -> str:
    """The protocol that gives numbers comparable with a row's."""
    protocols = {each.test_set: each.protocol for each in BENCHMARKS.values()}
    return protocols[row["dataset"]]


def _listed(rows: Sequence[NamedRow]) -> str:
    listed_rows = "; ".join(row.typed for row in rows[:LISTED])
    if len(rows) > LISTED:
        listed_rows += "; …"
    return listed_rows


def _matching(rows: Sequence[NamedRow], method: str) -> list[NamedRow]:
    """The rows with these words and no others; if there are none, those with these words."""
    asked_words = _words(method)
    exact_rows = [row for row in rows if _words(row.name) == asked_words]
    return exact_rows or [row for row in rows if asked_words <= _words(row.name)]


def _nearest(rows: Sequence[NamedRow], method: str) -> list[NamedRow]:
    """The rows, those with the most alike words first; one of each method where no row has any of
    the words.
    """
    nearest_rows = sorted(rows, key=lambda row: _likeness(row, method), reverse=True)
    asked_words = _words(method)
    if any(asked_words & _words(row.name) for row in rows):
        return nearest_rows
    first_of_method: dict[str, NamedRow] = {}
    for row in nearest_rows:
        first_of_method.setdefault(row.row.label, row)
    return [*first_of_method.values()]


def _likeness(row: NamedRow, method: str) -> tuple[int, float]:
    """How many of a method's words begin a word of a row; and how alike they are to those of the
    row, each to its nearest: the sum of shares.
    """
    words = _words(row.name)
    beginnings = 0
    likeness = 0.0
    for asked_word in _words(method):
        if any(word.startswith(asked_word) for word in words):
            beginnings += 1
        shares = [SequenceMatcher(None, asked_word, word).ratio() for word in words]
        likeness += max(shares)
    return beginnings, likeness


def _words(text: str) -> frozenset[str]:
    """The words of a name, each in one spelling."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    without_latex = re.sub(r"[$\\{}]", "", plain)  # VSE$\infty$
    joined = re.sub(APART, "", without_latex)
    return frozenset(map(_spelt, re.findall(r"[^\s(),:]+", joined)))


def _spelt(word: str) -> str:
    """One spelling of a word: "vse∞" for vse_infty and VSEinf, "vse2ad" for VSE+2AD."""
    for typed, sign in TYPED.items():
        word = re.sub(typed, sign, word)
    return re.sub(r"[_-]|(?<!\+)\+(?!\+)", "", word)
