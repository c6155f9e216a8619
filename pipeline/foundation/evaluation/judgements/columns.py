"""Recognises the columns of a file of judgements or of a run by its first row.

query-id  corpus-id  score           a header in any spelling: BEIR, ranx, ir_measures, PyTerrier,
CSV 55 0 12 1                            without one: TREC's four columns of qrels and six of runs,
                                         UniIR's five and seven, or three of either
"""

import csv
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pipeline.foundation.parts.errors import InputError

QUERY = "query"
DOCUMENT = "document"
TASK = "task"
# Column -> how tools spell it, in lower case with _ between words.
SPELT = {
    QUERY: ("query", "queries", "query_id", "query_ids", "qid", "q_id", "topic", "topic_id"),
    DOCUMENT: (
        "document",
        "documents",
        "document_id",
        "doc",
        "docs",
        "doc_id",
        "doc_ids",
        "docid",
        "docids",
        "docno",
        "corpus_id",
        "corpus_ids",
        "passage_id",
        "pid",
        "did",
        "candidate",
        "candidates",
        "candidate_id",
        "candidate_ids",
        "result",
        "results",
    ),
    "image": (
        "image",
        "image_id",
        "img",
        "img_id",
        "image_name",
        "image_file",
        "file",
        "filename",
        "file_name",
    ),
    "caption": ("caption", "caption_id", "sentence_id", "sentid", "text_id"),
}
GRADES = {"grade": ("grade", "relevance", "rel", "score", "label", "judgement", "judgment")}
RANKS = {"rank": ("rank", "ranks", "position")}
# Names of scores of which the smallest is best.
DISTANCES = ("distance", "distances", "dist", "dists")
SCORES = {
    "score": ("score", "scores", "similarity", "similarities", "sim", "sims", *DISTANCES),
}
PAIRS: tuple[set[str], ...] = ({"image", "caption"}, {QUERY, DOCUMENT})
MOST_COLUMNS = 1000  # of judgements and runs
SEPARATORS = {"\t": "tabs", ",": "commas", ";": "semicolons", " ": "blanks"}
# A column by which a tool's spelling is known.
TOOLS = {
    "BEIR's": "corpus_id",
    "PyTerrier's": "docno",
    "ranx's": "q_id",
    "ir_measures'": "query_id",
}


class Kind(NamedTuple):
    """What is read: qrels or a run."""

    noun: str
    value: Mapping[str, tuple[str, ...]]  # the column of values, as in `SPELT`
    needs_value: bool
    # Columns of a file without a header -> whose form it is, their names.
    bare: Mapping[int, tuple[str, Sequence[str]]]
    expected: str  # for messages
    # The column of ranks, likewise; {} where it is not read.
    ranks: Mapping[str, tuple[str, ...]] = {}


QRELS = Kind(
    "judgements",
    GRADES,
    False,
    {
        4: ("TREC qrels", (QUERY, "iteration", DOCUMENT, "grade")),
        3: ("qrels", (QUERY, DOCUMENT, "grade")),
        5: ("UniIR's qrels", (QUERY, "iteration", DOCUMENT, "grade", TASK)),
    },
    "TREC's `query 0 document grade`, or a header such as image,caption,grade or query-id,corpus-id,score",
)
RUN = Kind(
    "a run",
    SCORES,
    True,
    {
        6: ("a TREC run", (QUERY, "q0", DOCUMENT, "rank", "score", "system")),
        3: ("a run", (QUERY, DOCUMENT, "score")),
        7: ("UniIR's run", (QUERY, "q0", DOCUMENT, "rank", "score", "system", TASK)),
    },
    "TREC's `query Q0 document rank score system`, or a header such as query-id,corpus-id,score",
    RANKS,
)


class Columns(NamedTuple):
    """What a file was recognised as."""

    title: str  # for the user
    names: list[str]  # a name for each column; what is not read keeps its own
    separator: str
    header: bool  # whether the first row is one
    value: str = ""  # how the file calls the column of values; "" without a header


def recognised(line: str, path: object, kind: Kind, headless: bool = True) -> Columns:
    """Recognise a file by its first row that is not blank.

    headless: whether it may have no header.
    """
    for separator in SEPARATORS:
        cells = _cells(line, separator)
        if len(cells) > MOST_COLUMNS:  # a row of a matrix
            continue
        names = [_column(cell, kind) for cell in cells]
        if _is_header(names, kind):
            _refuse_twice(cells, names, path)
            return _with_header(cells, names, separator, kind)
    if headless:
        found = _headless(line, kind)
        if found is not None:
            return found
    raise InputError(f"{path}: expected {kind.expected}; the first row is {line[:40]!a}")


def _headless(line: str, kind: Kind) -> Columns | None:
    """The columns of a first row without a header, by their number; None for others.

    Columns are divided by tabs alone where ids hold blanks. So five cells between blanks may be
    four with such ids: UniIR's are looked for last, whose tasks are numbers.
    """
    of_uniir = []
    for separator in (" ", "\t"):
        cells = _cells(line, separator)
        form = kind.bare.get(len(cells))
        if form is None:
            continue
        whose, names = form
        title = f"{whose} without a header, {len(names)} columns: {' '.join(names)}"
        columns = Columns(title, list(names), separator, False)
        if TASK not in names:
            return columns
        if cells[-1].isdigit():
            of_uniir.append(columns)
    return next(iter(of_uniir), None)


def _is_header(names: Sequence[str | None], kind: Kind) -> bool:
    """Whether a row with these names of columns says what pairs are, and their values."""
    if kind.needs_value and {*kind.value, *kind.ranks}.isdisjoint(names):
        return False
    return any(pair <= {*names} for pair in PAIRS)


def _refuse_twice(cells: Sequence[str], names: Sequence[str | None], path: object) -> None:
    for twice in names:
        if twice and names.count(twice) > 1:
            several = [cell for cell, name in zip(cells, names, strict=True) if name == twice]
            raise InputError(
                f"{path}: has several columns for the {twice}: {', '.join(several)}; leave one"
            )


def _with_header(
    cells: Sequence[str], names: Sequence[str | None], separator: str, kind: Kind
) -> Columns:
    read = [cell for cell, name in zip(cells, names, strict=True) if name]
    unread = [cell for cell, name in zip(cells, names, strict=True) if not name]
    form = _title(cells, kind)
    between = SEPARATORS[separator]
    title = f"{form} with a header, {between} between columns; read are {', '.join(read)}"
    if unread:
        title += f", not {', '.join(unread)}"
    (value,) = kind.value
    spelt = ""
    if value in names:
        spelt = cells[names.index(value)]
    all_names = [name or f"column {at}" for at, name in enumerate(names)]
    return Columns(title, all_names, separator, True, spelt)


def _cells(line: str, separator: str) -> list[str]:
    if separator == " ":
        return line.split()
    if separator == "\t":
        return [cell.strip() for cell in line.split("\t")]
    try:
        cells = next(csv.reader([line], delimiter=separator), [])
    except csv.Error:  # a carriage return in it, or a cell without end: no row of such cells
        return []
    return [cell.strip() for cell in cells]


def is_distance(cell: str) -> bool:
    """Whether the name of a column says that its smallest value is best."""
    return _spelling(cell) in DISTANCES


def _spelling(cell: str) -> str:
    """The name of a column, however a file quotes it and joins its words."""
    return re.sub(r"[\s_-]+", "_", cell.strip(" \"'").lower())


def _column(cell: str, kind: Kind) -> str | None:
    spelt = _spelling(cell)
    known = {**kind.value, **kind.ranks, **SPELT}
    for name, spellings in known.items():
        if spelt in spellings:
            return name
    return None


def _title(cells: Sequence[str], kind: Kind) -> str:
    """Whose form it is, where the spelling tells."""
    if "image" in {_column(cell, kind) for cell in cells}:
        return "pairs of images and captions"
    noun = "qrels"
    if kind is RUN:
        noun = "run"
    spelt = {re.sub(r"[\s_-]+", "_", cell.lower()) for cell in cells}
    for tool, column in TOOLS.items():
        if column in spelt:
            return f"{tool} {noun}"
    return noun
