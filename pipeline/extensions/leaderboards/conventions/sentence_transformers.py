"""The evaluators of sentence-transformers."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from pipeline.foundation.evaluation.retrieval import Ids
from pipeline.judge.systems.scores import conventions
from pipeline.judge.systems.scores.conventions import Asked, Formula, OfLists


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

    def order(self, asked: Asked) -> Ids:
        scores = (-asked.scores).tolist()
        as_text = sorted(range(len(scores)), key=lambda at: (scores[at], asked.candidates[at]))
        if all(each.isascii() and each.isdigit() for each in asked.candidates):
            # Its ids may be numbers, in whose order its file has ties.
            numbers = [int(each) for each in asked.candidates]
            as_numbers = sorted(range(len(scores)), key=lambda at: (scores[at], numbers[at]))
            if as_numbers == list(range(len(scores))):
                return np.array(as_numbers, np.int64)
        return np.array(as_text, np.int64)
