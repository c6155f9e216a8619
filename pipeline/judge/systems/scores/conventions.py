"""How other tools measure: which scores are equal to them, how they order ties, what they leave
out, and the formula of each of their metrics.

A tool is a subclass of `OfLists` or of `OfMatrices`, in a file of an extension, and a line in its
`EXTENSION`. Texts of ids are compared as the tool does, so a run is read here with them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from pipeline.foundation import evaluation
from pipeline.foundation.evaluation.retrieval import Floats, Ids, Marks
from pipeline.foundation.parts import lazy
from pipeline.foundation.parts.errors import InputError, few, look_up
from pipeline.judge.systems.scores import runs

if TYPE_CHECKING:
    from pipeline.foundation.evaluation.judgements.rows import Table
    from pipeline.judge.systems.scores.system import System

# Ids of candidates -> the grade of each.
Grades = Mapping[str, float]


class Asked(NamedTuple):
    """A query with its list, as the files have them."""

    query: str
    candidates: Sequence[str]  # in the order of the file
    scores: Floats  # float64 [n]
    grades: Grades  # of the candidates that are judged


class Ordered(NamedTuple):
    """A query's list in the order of a tool."""

    gain: Floats  # float64 [n], the grade of each candidate, 0 for a wrong one
    ideal: Floats  # float64 [P], the grades of all right candidates, the largest first
    # Whether a candidate was listed before, bool [n]; None where each is listed once.
    again: Marks | None = None

    def found(self, k: int) -> int:
        """The number of different right candidates among the first k."""
        is_right = self.gain[:k] > 0
        if self.again is not None:
            is_right = is_right & ~self.again[:k]
        return int(np.count_nonzero(is_right))

    def first(self, k: int) -> int | None:
        """The place of the first right candidate among the first k, from 1."""
        right = np.flatnonzero(self.gain[:k] > 0)
        if not len(right):
            return None
        return int(right[0]) + 1


# A metric of one query at a cutoff.
Formula = Callable[[Ordered, int], float]


class Numbers(NamedTuple):
    """What a tool measures of one file."""

    values: dict[str, float]  # by the names of the tool
    queries: dict[str, int]  # how many each number is a mean of, by what they are called
    read_as: list[tuple[str, str]]  # each file, and what it was recognised as


class Conventions(ABC):
    """How a tool measures.

    Attributes:
        options: What a user may type behind the tool, TOOL:OPTION, to change what it leaves out.
        ties: How it orders ties, in words.
    """

    options: ClassVar[tuple[str, ...]] = ()
    ties: ClassVar[str]

    def __init__(self, chosen: Sequence[str] = ()) -> None:
        """Measure as the tool.

        Args:
            chosen: Those of `options` that the user typed.
        """
        self.chosen = frozenset(chosen)


class OfLists(Conventions):
    """A tool that measures a list of candidates for each query, by the ids that files have.

    Attributes:
        at: Its metrics with a cutoff, by name.
        whole: Those without a cutoff.
        separator: The text between name and cutoff.
        cutoffs: Those that are printed where the user names no metric.
        level: The smallest grade of a right candidate.
        has_whole_grades: Whether it reads grades as whole numbers.
        is_graded: Whether one right candidate is more right than another.
        shown: The metrics that are printed where the user names none; () for all at `cutoffs`.
    """

    at: ClassVar[Mapping[str, Formula]]
    whole: ClassVar[Mapping[str, Formula]] = {}
    separator: ClassVar[str] = "@"
    cutoffs: ClassVar[tuple[int, ...]] = (1, 5, 10)
    level: ClassVar[float] = math.nextafter(0, 1)
    has_whole_grades: ClassVar[bool] = False
    is_graded: ClassVar[bool] = True
    shown: ClassVar[tuple[str, ...]] = ()

    def group(self, metric: str) -> str:
        """Say which metrics see the same order and the same grades.

        Args:
            metric: The name of a metric, without its cutoff.

        Returns:
            The name of a group, of which `ordered` is asked once for each query.
        """
        return ""

    def stored(self, scores: Floats, group: str) -> np.ndarray:
        """Store scores as the tool compares them.

        Args:
            scores: Float64 [n], in the order of the file.
            group: That of the metric, see `group`.

        Returns:
            As many numbers, of which some may be equal that were not.
        """
        return scores

    def kept(self, asked: Asked) -> Ids:
        """Find the candidates that are measured.

        Args:
            asked: The query with its list.

        Returns:
            Int64, the places in the file of those that the tool does not leave out.
        """
        return np.arange(len(asked.candidates))

    @abstractmethod
    def order(self, asked: Asked) -> Ids:
        """Order the list of a query.

        Args:
            asked: The query with its list, without what the tool leaves out.

        Returns:
            Int64 [n], the places in this list, the best first.
        """

    def mean(self, metric: str, values: Floats) -> float:
        """A number of all queries.

        Args:
            metric: The name of the metric, without its cutoff.
            values: Float64 [Q], of each query.

        Returns:
            The number as the tool writes it.
        """
        return float(np.mean(values))

    def lists(
        self, path: Path, parts: Sequence[str], judgements: Path | None
    ) -> tuple[Iterator[Asked], list[tuple[str, str]]]:
        """Read the lists of a file.

        Args:
            path: A run.
            parts: What the user types behind the file, to choose in it.
            judgements: What is right; None where the user names no file.

        Returns:
            The queries that are measured with their lists; and each file with what it was read as.

        Raises:
            InputError: For what cannot be read or measured.
        """
        if judgements is None:
            raise InputError(f"{path}: --as needs --qrels, which says what is right")
        as_written, title = _run(path, parts)
        listed = {}
        for query, (candidates, scores) in as_written.items():
            listed[query] = self.once(path, query, candidates, scores)
        grades, title_of_grades = _grades(judgements, self.has_whole_grades)
        if not any(query in grades for query in listed):
            raise InputError(f"{judgements}: judges none of the queries of {path}")
        asking = self.queries(path, [*listed], [*grades])
        read_as = [(str(path), title), (str(judgements), title_of_grades)]
        return (_asked(query, listed, grades) for query in asking), read_as

    def once(
        self, path: Path, query: str, candidates: Sequence[str], scores: Sequence[float]
    ) -> tuple[Sequence[str], Sequence[float]]:
        """Take each candidate of a query once.

        Args:
            path: The run, for messages.
            query: The query.
            candidates: Those that it lists, in the order of the file.
            scores: The score of each.

        Returns:
            Both.

        Raises:
            InputError: If one is listed twice.
        """
        if len(set(candidates)) == len(candidates):
            return candidates, scores
        twice = next(each for each in candidates if candidates.count(each) > 1)
        raise InputError(f"{path}: lists {twice[:40]!a} twice for {query[:40]!a}; leave one")

    def queries(self, path: Path, listed: Sequence[str], judged: Sequence[str]) -> list[str]:
        """Choose the queries that are measured.

        Args:
            path: The run, for messages.
            listed: Those of the run.
            judged: Those of the judgements.

        Returns:
            Those that are in both.

        Raises:
            InputError: If the tool refuses that they differ.
        """
        are_judged = set(judged)
        return [query for query in listed if query in are_judged]

    def is_asked(self, asked: Asked) -> bool:
        """Whether a query counts.

        Args:
            asked: The query with its list.

        Returns:
            False for one that the tool leaves out, such as one without a right candidate.
        """
        return True

    def ordered(self, asked: Asked, group: str) -> Ordered:
        """Order what is right in the list of a query.

        Args:
            asked: The query with its list.
            group: That of the metric, see `group`.

        Returns:
            The grades in the order of the tool, without those below its `level`.
        """
        kept = self.kept(asked)
        candidates = [asked.candidates[place] for place in kept.tolist()]
        scores = self.stored(asked.scores[kept], group)
        order = self.order(Asked(asked.query, candidates, scores, asked.grades))
        gains = np.array([asked.grades.get(each, 0.0) for each in candidates], np.float64)[order]
        grades = np.array([*asked.grades.values()], np.float64)
        gains = self._grades_of(gains)
        ideal = np.sort(self._grades_of(grades))[::-1]
        return Ordered(gains, ideal[ideal > 0])

    def _grades_of(self, grades: Floats) -> Floats:
        """Grades, 0 for wrong ones; 1 for all right ones where the tool knows no grades."""
        right = grades >= self.level
        if not self.is_graded:
            return right.astype(np.float64)
        return np.where(right, grades, 0)

    def measure(
        self,
        path: Path,
        parts: Sequence[str] = (),
        judgements: Path | None = None,
        names: Sequence[str] = (),
    ) -> Numbers:
        """Measure a file.

        Args:
            path: A run.
            parts: What the user types behind the file, to choose in it.
            judgements: What is right.
            names: Metrics by the tool's names; none for those that are printed by default.

        Returns:
            The numbers.

        Raises:
            InputError: For a file or a metric that the tool does not measure.
        """
        metrics = self._metrics(names)
        lists, read_as = self.lists(path, parts, judgements)
        values: dict[str, list[float]] = {name: [] for name in metrics}
        queries = 0
        for asked in lists:
            if not self.is_asked(asked):
                continue
            queries += 1
            orders: dict[str, Ordered] = {}
            for name, (formula, k, metric) in metrics.items():
                group = self.group(metric)
                if group not in orders:
                    orders[group] = self.ordered(asked, group)
                values[name].append(formula(orders[group], k))
        if not queries:
            raise InputError(f"{path}: none of its queries has a right candidate")
        means = {}
        for name, (_, _, metric) in metrics.items():
            means[name] = self.mean(metric, np.array(values[name]))
        return Numbers(means, {"query": queries}, read_as)

    def _metrics(self, names: Sequence[str]) -> dict[str, tuple[Formula, int, str]]:
        """By its whole name, the formula of each metric, its cutoff and its name without it."""
        names = [*(names or self.shown)]
        if not names:
            names = [*self.whole]
            for metric in self.at:
                names += [f"{metric}{self.separator}{k}" for k in self.cutoffs]
        metrics = {}
        for name in names:
            metric, _, digits = name.rpartition(self.separator)
            if name in self.whole:
                metrics[name] = (self.whole[name], ALL, name)
            elif metric in self.at and digits.isascii() and digits.isdigit() and int(digits):
                metrics[name] = (self.at[metric], int(digits), metric)
            else:
                with_cutoffs = [f"{metric}{self.separator}K" for metric in self.at]
                known = ", ".join([*self.whole, *with_cutoffs])
                raise InputError(f"--metric {name[:40]}: the tool has {known}")
        return metrics


class OfMatrices(Conventions):
    """A tool that measures a matrix of images x captions."""

    @abstractmethod
    def measure(self, system: System, names: Sequence[str] = ()) -> Numbers:
        """Measure a matrix.

        Args:
            system: Its scores, and each caption's image.
            names: Metrics by the tool's names; none for those that are printed by default.

        Returns:
            The numbers.

        Raises:
            InputError: For a matrix or a metric that the tool does not measure.
        """


TOOLS: lazy.LookupTable[type[Conventions]] = lazy.LookupTable(
    {}, "conventions", "tool", base="pipeline.judge.systems.scores.conventions:Conventions"
)


def of_tool(text: str) -> Conventions:
    """How a tool measures, by what a user types: TOOL, or TOOL:OPTION:OPTION."""
    name, *chosen = text.split(":")
    tool: type[Conventions] = look_up("tool", name, TOOLS)
    for option in chosen:
        if option not in tool.options:
            known = f"only {few(tool.options)}" if tool.options else "nothing"
            raise InputError(f"--as {text[:60]}: {name} takes {known} behind it")
    return tool(chosen)


def refuse_lists(system: System) -> None:
    """Refuse lists of the best candidates, for a tool that measures matrices."""
    if isinstance(system.scores, evaluation.retrieval.Lists):
        raise InputError(
            f"{system.name}: lists each query's candidates, and the tool measures a matrix with all scores"
        )


ALL = 1 << 62  # a cutoff that no list reaches


def hit(ordered: Ordered, k: int) -> float:
    """Whether a right candidate is among the first k."""
    return float(ordered.found(k) > 0)


def share(ordered: Ordered, k: int) -> float:
    """The share of the right candidates that are among the first k."""
    return ordered.found(k) / max(len(ordered.ideal), 1)


def precision(ordered: Ordered, k: int) -> float:
    """The share of the first k places that have a right candidate."""
    return ordered.found(k) / k


def reciprocal_rank(ordered: Ordered, k: int) -> float:
    """One by the place of the first right candidate, 0 if it is not among the first k."""
    first = ordered.first(k)
    return 1 / first if first else 0.0


def r_precision(ordered: Ordered, k: int) -> float:
    """The precision at as many places as there are right candidates."""
    return share(ordered, len(ordered.ideal))


def average_precision(ordered: Ordered, k: int) -> float:
    """The precisions at the right candidates among the first k, summed, divided by all right
    ones.
    """
    return _precisions(ordered, k) / max(len(ordered.ideal), 1)


def average_precision_of_possible(ordered: Ordered, k: int) -> float:
    """The precisions at the right candidates among the first k, summed, divided by as many as can
    be among them.
    """
    return _precisions(ordered, k) / max(min(len(ordered.ideal), k), 1)


def _precisions(ordered: Ordered, k: int) -> float:
    is_right = ordered.gain[:k] > 0
    places = np.arange(1, len(is_right) + 1)
    return float(np.sum(np.cumsum(is_right)[is_right] / places[is_right]))


def linear_ndcg(ordered: Ordered, k: int) -> float:
    """The discounted cumulated grades of the first k by those of the best order."""
    return _ratio(discounted(ordered.gain[:k]), discounted(ordered.ideal[:k]))


def exponential_ndcg(ordered: Ordered, k: int) -> float:
    """The same with 2 to the power of the grade, less 1, as gain."""
    gain = np.exp2(ordered.gain[:k]) - 1
    ideal = np.exp2(ordered.ideal[:k]) - 1
    return _ratio(discounted(gain), discounted(ideal))


def discounted(gains: Floats) -> float:
    """The sum of gains, each divided by the logarithm of its place and 1 to the base 2."""
    return float(np.sum(gains / np.log2(np.arange(len(gains)) + 2)))


def _ratio(value: float, ideal: float) -> float:
    return value / ideal if ideal else 0.0


# Query -> its candidates and their scores, in the order of a file.
_Listed = Mapping[str, tuple[Sequence[str], Sequence[float]]]


def _run(path: Path, parts: Sequence[str]) -> tuple[_Listed, str]:
    """The lists of a run with the ids that it has."""
    judgements = evaluation.judgements
    rows = judgements.rows.Rows(path, judgements.columns.RUN, parts)
    listed: dict[str, tuple[list[str], list[float]]] = {}
    for table, numbers in rows.tables():
        if rows.headless and numbers[:1] == 1:
            runs.refuse_other_order(path, table)
        queries, candidates = _ids(path, table)
        score, _ = runs.scores_of(rows, table, numbers)
        runs.refuse_left_out(rows)
        for query, candidate, value in zip(queries, candidates, score.tolist(), strict=True):
            of_query = listed.setdefault(query, ([], []))
            of_query[0].append(candidate)
            of_query[1].append(value)
    for query in rows.unanswered:
        listed[query] = ([], [])
    if judgements.columns.is_distance(rows.value):
        raise InputError(f"{path}: has the column {rows.value}; tools rank the largest first")
    return listed, rows.title


def _grades(path: Path, are_whole: bool) -> tuple[dict[str, dict[str, float]], str]:
    """The grades of each query's candidates, with the ids that a file of judgements has."""
    judgements = evaluation.judgements
    rows = judgements.rows.Rows(path, judgements.columns.QRELS)
    grades: dict[str, dict[str, float]] = {}
    for table, numbers in rows.tables():
        queries, candidates = _ids(path, table)
        grade, is_finite = rows.values(table)
        rows.leave_out("a grade that is no number", table, numbers, ~is_finite)
        if are_whole:
            is_part = is_finite & (grade != np.trunc(grade))
            rows.leave_out("a grade that is no whole number", table, numbers, is_part)
        if rows.left_out:
            raise InputError(f"{path}: judgements are read whole; {rows.left_out.lines()[0]}")
        for query, candidate, value in zip(queries, candidates, grade.tolist(), strict=True):
            of_query = grades.setdefault(query, {})
            if of_query.setdefault(candidate, value) != value:
                raise InputError(
                    f"{path}: judges {candidate[:40]!a} twice for {query[:40]!a}, with different grades"
                )
    return grades, rows.title


def _ids(path: Path, table: Table) -> tuple[list[str], list[str]]:
    """The ids of queries and candidates in a piece of a file."""
    names = (evaluation.judgements.columns.QUERY, evaluation.judgements.columns.DOCUMENT)
    if not {*names} <= {*table}:
        raise InputError(
            f"{path}: has columns of images and captions; tools measure queries and candidates"
        )
    queries, candidates = (list(map(str, table[name].tolist())) for name in names)
    return queries, candidates


def _asked(query: str, listed: _Listed, grades: Mapping[str, Grades]) -> Asked:
    """A query with its list, which may be empty."""
    candidates, scores = listed.get(query, ([], []))
    return Asked(query, candidates, np.array(scores, np.float64), grades[query])
