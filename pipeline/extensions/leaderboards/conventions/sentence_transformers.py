"""The evaluators of sentence-transformers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pipeline.extensions.leaderboards.sentence_transformers import Predictions
from pipeline.foundation.evaluation.retrieval import Ids
from pipeline.foundation.files.expansion import unpacked
from pipeline.judge.systems.scores import conventions, runs
from pipeline.judge.systems.scores.conventions import Asked, Formula, OfLists

NUMBER = re.compile(rb'"corpus_id"\s*:\s*\d')
WHOLE = re.compile(r"-?\d{1,100}")
START = 1 << 16  # bytes in which a first candidate is looked for


class SentenceTransformers(OfLists):
    """InformationRetrievalEvaluator of sentence-transformers: right or wrong, without grades.

    Queries without a right candidate are left out. map@K is divided by as many right candidates as
    K can have.

    Source:
        sentence_transformer/evaluation/information_retrieval.py of sentence-transformers 6.2.
    """

    ties = "of equal scores the smaller id first"
    is_graded = False
    at: ClassVar[Mapping[str, Formula]] = {
        "accuracy": conventions.hit,
        "precision": conventions.precision,
        "recall": conventions.share,
        "ndcg": conventions.linear_ndcg,
        "mrr": conventions.reciprocal_rank,
        "map": conventions.average_precision_of_possible,
    }
    shown = (
        *(f"accuracy@{k}" for k in (1, 3, 5, 10)),
        *(f"precision@{k}" for k in (1, 3, 5, 10)),
        *(f"recall@{k}" for k in (1, 3, 5, 10)),
        "ndcg@10",
        "mrr@10",
        "map@100",
    )

    def is_asked(self, asked: Asked) -> bool:
        return any(grade >= self.level for grade in asked.grades.values())

    def lists(
        self, path: Path, parts: Sequence[str], judgements: Path | None
    ) -> tuple[Iterator[Asked], list[tuple[str, str]]]:
        self._has_numbers = _has_numbers(path)
        return super().lists(path, parts, judgements)

    def order(self, asked: Asked) -> Ids:
        ids: list[Any] = [*asked.candidates]
        if self._has_numbers and all(WHOLE.fullmatch(each) for each in asked.candidates):
            ids = [int(each) for each in ids]
        keys = list(zip((-asked.scores).tolist(), ids, strict=True))
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)


def _has_numbers(path: Path) -> bool:
    """Whether ids in its own predictions are numbers, which it compares as such."""
    if runs.layout_of(path) is not Predictions:
        return False
    with unpacked(path) as file:
        return bool(NUMBER.search(file.read(START)))
