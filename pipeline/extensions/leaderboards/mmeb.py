"""What VLM2Vec's evaluation of MMEB writes for a data set: `NAME_pred.jsonl` and
`NAME_info.jsonl`.

    NAME_pred.jsonl   {"prediction": [best first], "label": [right ones], "rel_scores": null}
    NAME_info.jsonl   {"cand_names": [candidates], "label_name": right, "rel_scores": [grades]}

A line is a query, and its number is the query's id.
"""

import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.foundation.evaluation.judgements.layouts import Layout, Row
from pipeline.foundation.files import long_json
from pipeline.foundation.files.expansion import unpacked
from pipeline.foundation.parts.errors import refusing

# Keys come in any order; grades say nothing of which file it is.
GRADES = r'(?:"rel_scores"\s*:\s*(?:null|\[[^\]]*\])\s*,\s*)?'
PREDICTED = re.compile(rf'\s*\{{\s*{GRADES}"(?:prediction|label)"\s*:\s*\[')
INFO = re.compile(rf'\s*\{{\s*{GRADES}"(?:cand_names"\s*:\s*\[|label_name"\s*:\s*["\[\d])')
# A line lists every candidate of a query, up to all pages of a corpus.
LONGEST_QUERY = 1 << 26
PIECE = 1 << 20  # characters that are read at once


class RankedLists(Layout):
    """`NAME_pred.jsonl` as a run: ranks without scores, so that ties cannot be seen."""

    value = "rank"
    has_judgements = True
    has_all_candidates = True
    title = "MMEB's ranked lists, without scores: ties cannot be seen"

    @classmethod
    def recognises(cls, start: str) -> bool:
        return bool(PREDICTED.match(start))

    def rows(self, text: Iterable[str]) -> Iterator[Row]:
        for number, line in _lines(text):
            ranked = _names(line.get("prediction"), number)
            labels: list[str] = []
            if "label" in line:
                labels = _labels(line, number)
            names = distinct(_right_once(ranked, labels))
            if not names:
                self.unanswered.append(str(number))
            for rank, candidate in enumerate(names, start=1):
                yield str(number), candidate, str(rank)


class Labels(Layout):
    """The right candidates of `NAME_pred.jsonl` or `NAME_info.jsonl`, with their grades."""

    value = "grade"
    title = "MMEB's labels"

    @classmethod
    def recognises(cls, start: str) -> bool:
        return bool(PREDICTED.match(start) or INFO.match(start))

    def rows(self, text: Iterable[str]) -> Iterator[Row]:
        for answer in answers(text):
            grades = answer.grades or [1] * len(answer.labels)
            for label, grade in zip(answer.labels, grades, strict=True):
                yield str(answer.number), label, str(grade)


class Query(NamedTuple):
    """A line of `NAME_info.jsonl`."""

    candidates: list[str]  # a right one once
    labels: list[str]  # its right candidates
    listed: int  # how many candidates the line has


def queries_of(text: Iterable[str]) -> list[Query]:
    """The lines of `NAME_info.jsonl`, in which a right candidate is listed once."""
    queries = []
    for number, line in _lines(text):
        labels = _labels(line, number)
        names = _names(line.get("cand_names"), number)
        candidates = _right_once(names, labels)
        if not candidates:
            raise ValueError(f"line {number + 1} has no candidates")
        queries.append(Query(candidates, labels, len(names)))
    return queries


class Answer(NamedTuple):
    """What is right in a line of `NAME_pred.jsonl` or `NAME_info.jsonl`."""

    number: int  # of the line, from 0
    labels: list[str]  # the right candidates
    grades: list[Any] | None  # of each label; None where the line has none
    ranked: list[str]  # the candidates, the best first; none in `NAME_info.jsonl`


def answers(text: Iterable[str]) -> Iterator[Answer]:
    """What is right for each query."""
    for number, line in _lines(text):
        labels = _labels(line, number)
        grades = line.get("rel_scores") or None
        if grades is not None and (not isinstance(grades, list) or len(grades) != len(labels)):
            raise ValueError(
                f"line {number + 1} has {len(labels)} labels, and other rel_scores: expected one each"
            )
        for grade in grades or []:
            _require_number(grade, number)
        yield Answer(number, labels, grades, _names(line.get("prediction", []), number))


def predicted(text: Iterable[str]) -> Iterator[list[str]]:
    """Each query's ranked candidates, of `NAME_pred.jsonl`."""
    for number, line in _lines(text):
        yield _names(line.get("prediction"), number)


@contextmanager
def reading(path: Path) -> Iterator[Iterator[str]]:
    """Open JSON Lines, in pieces of text; what is wrong with them is said with the file's name."""
    with (
        refusing(ValueError, lambda error: f"{path}: {error}"),
        unpacked(path) as file,
        io.TextIOWrapper(file, "utf-8-sig") as text,
    ):
        yield iter(lambda: text.read(PIECE), "")


def distinct(names: Sequence[str]) -> list[str]:
    """The names of a query's candidates; one that comes again keeps its place under a name that no
    other has.
    """
    taken = set(names)
    seen: set[str] = set()
    last: dict[str, int] = {}
    different = []
    for name in names:
        other = name
        number = last.get(name, 1)
        while other in seen or (other != name and other in taken):
            number += 1
            other = f"{name} ({number})"
        last[name] = number
        seen.add(other)
        different.append(other)
    return different


def _right_once(names: Sequence[str], labels: Sequence[str]) -> list[str]:
    """The names of a query's candidates, the right ones once."""
    right = {*labels}
    there = set[str]()
    candidates = []
    for name in names:
        if name in right and name in there:
            continue
        there.add(name)
        candidates.append(name)
    return candidates


def _lines(text: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines, numbered from 0."""
    for number, line in enumerate(long_json.values(text, LONGEST_QUERY)):
        if not isinstance(line, dict):
            raise ValueError(f"line {number + 1} is no object")
        yield number, line


def _labels(line: dict[str, Any], number: int) -> list[str]:
    """The names of a query's right candidates: one, or a list."""
    labels = line.get("label", line.get("label_name"))
    if not isinstance(labels, list):
        labels = [labels]
    return _names(labels, number)


def _names(candidates: Any, number: int) -> list[str]:
    """The names of candidates in a line."""
    if not isinstance(candidates, list):
        raise ValueError(f"line {number + 1} has no list of candidates")
    return [_name(candidate, number) for candidate in candidates]


def _require_number(grade: Any, number: int) -> None:
    """Refuse a grade that orders nothing."""
    is_number = isinstance(grade, int | float) and not isinstance(grade, bool)
    if not is_number or not math.isfinite(grade):
        raise ValueError(
            f"line {number + 1}: rel_scores has {str(grade)[:40]!a}, expected a number for each label"
        )


def _name(candidate: Any, number: int) -> str:
    """The name of a candidate: a text, a path or a number."""
    if isinstance(candidate, bool) or not isinstance(candidate, str | int):
        raise ValueError(
            f"line {number + 1}: a candidate is neither a text nor a number: {str(candidate)[:40]!a}"
        )
    return str(candidate)
