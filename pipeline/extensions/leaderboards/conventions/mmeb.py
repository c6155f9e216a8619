"""VLM2Vec's evaluation of MMEB."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from pipeline.extensions.leaderboards.mmeb import RankedLists, answers, reading
from pipeline.foundation.evaluation.retrieval import Floats, Ids
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores import conventions, runs
from pipeline.judge.systems.scores.conventions import Asked, Formula, OfLists, Ordered

GRADED = "graded"


def _recall(ordered: Ordered, k: int) -> float:
    if not len(ordered.ideal):
        return 1.0
    return conventions.share(ordered, k)


def _f1(ordered: Ordered, k: int) -> float:
    precision = conventions.precision(ordered, k)
    recall = _recall(ordered, k)
    if not precision + recall:
        return 0.0
    return 2 * precision * recall / (precision + recall)


class Mmeb(OfLists):
    """VLM2Vec's metrics of MMEB, by the order of `NAME_pred.jsonl`, which has no scores.

    Every label is right, whatever its grade is; only nDCG sees grades. Recall without a label is 1,
    and map@K is divided by as many labels as K can have. A candidate that is listed twice counts
    twice in nDCG, map and mrr.

    Source:
        src/eval_utils/metrics.py of VLM2Vec, January 2026.
    """

    ties = "ties in the order of the list"
    at: ClassVar[Mapping[str, Formula]] = {
        "hit": conventions.hit,
        "ndcg_linear": conventions.linear_ndcg,
        "ndcg_exponential": conventions.exponential_ndcg,
        "precision": conventions.precision,
        "recall": _recall,
        "f1": _f1,
        "map": conventions.average_precision_of_possible,
        "mrr": conventions.reciprocal_rank,
    }

    def group(self, metric: str) -> str:
        return GRADED if metric.startswith("ndcg") else ""

    def order(self, asked: Asked) -> Ids:
        return np.arange(len(asked.candidates))

    def lists(
        self, path: Path, parts: Sequence[str], judgements: Path | None
    ) -> tuple[Iterator[Asked], list[tuple[str, str]]]:
        if runs.layout_of(path) is not RankedLists:
            raise InputError(f"{path}: --as mmeb measures NAME_pred.jsonl, VLM2Vec's ranked lists")
        if judgements is not None:
            raise InputError(f"{path}: says itself what is right; leave out --qrels")
        if parts:
            raise InputError(f"{path}: holds one list a query; leave out :{':'.join(parts)}")
        return _asked(path), [(str(path), RankedLists.title)]

    def ordered(self, asked: Asked, group: str) -> Ordered:
        grades = asked.grades
        if group != GRADED:
            grades = dict.fromkeys(grades, 1.0)
        gains = np.array([grades.get(each, 0.0) for each in asked.candidates], np.float64)
        ideal: Floats = np.sort(np.array([*grades.values()], np.float64))[::-1]
        seen: set[str] = set()
        again = np.zeros(len(gains), bool)
        for place, candidate in enumerate(asked.candidates):
            again[place] = candidate in seen
            seen.add(candidate)
        return Ordered(gains, ideal, again)


def _asked(path: Path) -> Iterator[Asked]:
    """Each line as a query with its list."""
    with reading(path) as text:
        for answer in answers(text):
            grades = dict.fromkeys(answer.labels, 1.0)
            for label, grade in zip(answer.labels, answer.grades or [], strict=False):
                grades[label] = _number(grade, answer.number)
            scores = -np.arange(len(answer.ranked), dtype=np.float64)
            yield Asked(str(answer.number), answer.ranked, scores, grades)


def _number(grade: object, number: int) -> float:
    if isinstance(grade, bool) or not isinstance(grade, int | float) or not np.isfinite(grade):
        raise ValueError(f"line {number + 1}: a grade of rel_scores is no number")
    return float(grade)
