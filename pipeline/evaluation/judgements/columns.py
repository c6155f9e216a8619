"""Recognises the columns of a file of judgements or of a run by its first row.

query-id  corpus-id  score           a header in any spelling: BEIR, ranx, ir_measures, PyTerrier,
CSV 55 0 12 1                            without one: TREC's four columns of qrels and six of runs,
or three of qrels
"""

import csv
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pipeline.parts.errors import InputError

QUERY, DOCUMENT = "query", "document"
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


class Kind(NamedTuple):
    """What is read: qrels or a run."""

    noun: str
    value: Mapping[str, tuple[str, ...]]  # the column of values, as in `SPELT`
    needs_value: bool
    bare: Mapping[
        int, tuple[str, Sequence[str]]
    ]  # columns of a file without a header -> whose form it is, their names
    expected: str  # for messages
    ranks: Mapping[
        str, tuple[str, ...]
    ] = {}  # the column of ranks, likewise; {} where it is not read


QRELS = Kind(
    "judgements",
    GRADES,
    False,
    {
        4: ("TREC qrels", (QUERY, "iteration", DOCUMENT, "grade")),
        3: ("qrels", (QUERY, DOCUMENT, "grade")),
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
    for separator in ("\t", ",", ";", " "):
        cells = _cells(line, separator)
        if len(cells) > MOST_COLUMNS:  # a row of a matrix
            continue
        names = [_column(cell, kind) for cell in cells]
        values = {*kind.value, *kind.ranks}
        has_value = not kind.needs_value or not values.isdisjoint(names)
        if has_value and any(pair <= {*names} for pair in PAIRS):
            if twice := next((name for name in names if name and names.count(name) > 1), None):
                several = [cell for cell, name in zip(cells, names, strict=True) if name == twice]
                raise InputError(
                    f"{path}: has several columns for the {twice}: {', '.join(several)}; leave one"
                )
            read = [cell for cell, name in zip(cells, names, strict=True) if name]
            unread = [cell for cell, name in zip(cells, names, strict=True) if not name]
            title = (
                _title(cells, kind)
                + f" with a header, {SEPARATORS[separator]} between columns; read are "
                + ", ".join(read)
                + (f", not {', '.join(unread)}" if unread else "")
            )
            (value,) = kind.value
            return Columns(
                title,
                [name or f"column {at}" for at, name in enumerate(names)],
                separator,
                True,
                cells[names.index(value)] if value in names else "",
            )
    for separator in (" ", "\t") if headless else ():  # tabs alone where ids hold blanks
        if (recognised_kind := kind.bare.get(len(_cells(line, separator)))) is not None:
            title, bare = recognised_kind
            return Columns(
                f"{title} without a header, {len(bare)} columns: {' '.join(bare)}",
                list(bare),
                separator,
                False,
            )
    raise InputError(f"{path}: expected {kind.expected}; the first row is {line[:40]!a}")


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


def _column(cell: str, kind: Kind) -> str | None:
    spelt = re.sub(r"[\s_-]+", "_", cell.strip(" \"'").lower())
    known = {**kind.value, **kind.ranks, **SPELT}
    return next((name for name, spellings in known.items() if spelt in spellings), None)


def _title(cells: Sequence[str], kind: Kind) -> str:
    """Whose form it is, where the spelling tells."""
    spelt = {re.sub(r"[\s_-]+", "_", cell.lower()) for cell in cells}
    tools = {
        "BEIR's": "corpus_id",
        "PyTerrier's": "docno",
        "ranx's": "q_id",
        "ir_measures'": "query_id",
    }
    tool = next((tool for tool, column in tools.items() if column in spelt), "")
    noun = "run" if kind is RUN else "qrels"
    if "image" in {_column(cell, kind) for cell in cells}:
        return "pairs of images and captions"
    return f"{tool} {noun}" if tool else noun
