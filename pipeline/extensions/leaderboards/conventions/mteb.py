"""mteb: pytrec_eval's numbers, rounded, and an MRR of its own."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from pipeline.extensions.leaderboards.conventions.trec_eval import TrecEval
from pipeline.foundation.evaluation.retrieval import Floats, Ids
from pipeline.judge.systems.scores import conventions
from pipeline.judge.systems.scores.conventions import Asked, Formula

IDENTICAL = "ignore_identical_ids"
FIRST = "skip_first_result"
PLACES = 5
MRR = "mrr"


class Mteb(TrecEval):
    """mteb, whose tasks may leave out candidates that its predictions still have:
    `ignore_identical_ids` those with the id of the query, `skip_first_result` the best one.

    Its MRR keeps scores of 64 bits; the other numbers are pytrec_eval's, rounded to five places.

    Source:
        _evaluators/retrieval_evaluator.py and retrieval_metrics.py of mteb 2.26.
    """

    options: ClassVar[tuple[str, ...]] = (IDENTICAL, FIRST)
    separator = "_at_"
    cutoffs = (1, 3, 5, 10, 20, 100, 1000)
    at: ClassVar[Mapping[str, Formula]] = {
        "ndcg": conventions.linear_ndcg,
        "map": conventions.average_precision,
        "recall": conventions.share,
        "precision": conventions.precision,
        MRR: conventions.reciprocal_rank,
        "hit_rate": conventions.hit,
    }
    whole: ClassVar[Mapping[str, Formula]] = {
        "accuracy": lambda ordered, _: conventions.share(ordered, 1)
    }

    def group(self, metric: str) -> str:
        return MRR if metric == MRR else ""

    def stored(self, scores: Floats, group: str) -> np.ndarray:
        if group == MRR:
            return scores
        return super().stored(scores, group)

    def kept(self, asked: Asked) -> Ids:
        places = np.arange(len(asked.candidates))
        if IDENTICAL in self.chosen:
            is_query = np.array([each == asked.query for each in asked.candidates], bool)
            places = places[~is_query]
        if FIRST in self.chosen and len(places):
            # Of equal scores the first of the file, whatever its id is.
            best = np.argmax(asked.scores[places])
            places = np.delete(places, best)
        return places

    def mean(self, metric: str, values: Floats) -> float:
        mean = super().mean(metric, values)
        if metric == MRR:
            return mean
        return round(mean, PLACES)
