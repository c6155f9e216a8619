"""vidore-benchmark, which mteb has replaced."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from pipeline.extensions.leaderboards.conventions.mteb import IDENTICAL, MRR, Mteb
from pipeline.foundation.evaluation.retrieval import Ids
from pipeline.judge.systems.scores import conventions
from pipeline.judge.systems.scores.conventions import Asked, Formula


class ViDoReBenchmark(Mteb):
    """vidore-benchmark: scores below 0 become 0, but for the first candidate of the file, and a
    candidate that is listed twice keeps its larger score.

    Candidates with the id of the query are left out, and MRR keeps ties in the order of the file.

    Source:
        evaluation/vidore_evaluators/*.py of vidore-benchmark 5, trainer/eval_utils.py of
        colpali-engine.
    """

    options = ()
    ties = "of equal scores the larger id first, in MRR the first of the file"
    cutoffs = (1, 3, 5, 10, 20, 50, 100)
    at: ClassVar[Mapping[str, Formula]] = {
        "ndcg": conventions.linear_ndcg,
        "map": conventions.average_precision,
        "recall": conventions.share,
        "precision": conventions.precision,
        MRR: conventions.reciprocal_rank,
    }
    whole: ClassVar[Mapping[str, Formula]] = {}

    def __init__(self, chosen: Sequence[str] = ()) -> None:
        super().__init__([*chosen, IDENTICAL])

    def once(
        self, path: Path, query: str, candidates: Sequence[str], scores: Sequence[float]
    ) -> tuple[list[str], list[float]]:
        kept: dict[str, float] = {}
        for candidate, score in zip(candidates, scores, strict=True):
            if not kept:
                kept[candidate] = score
            else:
                kept[candidate] = max(kept.get(candidate, 0.0), score)
        return [*kept], [*kept.values()]

    def order(self, asked: Asked) -> Ids:
        if asked.scores.dtype == np.float64:  # of MRR
            return np.argsort(-asked.scores, kind="stable")
        return super().order(asked)
