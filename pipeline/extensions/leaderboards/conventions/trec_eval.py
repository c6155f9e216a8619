"""trec_eval and pytrec_eval, whose numbers mteb, Pyserini and ir_measures print."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from pipeline.foundation.evaluation.retrieval import Floats, Ids
from pipeline.judge.systems.scores import conventions
from pipeline.judge.systems.scores.conventions import Asked, Formula, OfLists


class TrecEval(OfLists):
    """trec_eval: scores of 32 bits, so that doubles that are closer become ties.

    A number is a mean over the queries that are judged and listed.

    Source:
        form_res_rels.c, trec_format.h and m_*.c of trec_eval 9.0.8; pytrec_eval 0.5.
    """

    ties = "of equal scores the larger id first"
    separator = "_"
    cutoffs: ClassVar[tuple[int, ...]] = (5, 10, 100)
    level = 1
    has_whole_grades = True
    whole: ClassVar[Mapping[str, Formula]] = {
        "map": conventions.average_precision,
        "Rprec": conventions.r_precision,
        "recip_rank": conventions.reciprocal_rank,
        "ndcg": conventions.linear_ndcg,
    }
    at: ClassVar[Mapping[str, Formula]] = {
        "P": conventions.precision,
        "recall": conventions.share,
        "ndcg_cut": conventions.linear_ndcg,
        "map_cut": conventions.average_precision,
        "success": conventions.hit,
    }

    def stored(self, scores: Floats, group: str) -> np.ndarray:
        return scores.astype(np.float32)

    def order(self, asked: Asked) -> Ids:
        keys = list(zip(asked.scores.tolist(), asked.candidates, strict=True))
        order = sorted(range(len(keys)), key=keys.__getitem__, reverse=True)
        return np.array(order, np.int64)
