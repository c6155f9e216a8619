"""RSUM, mR and the mean recall: R@1, R@5 and R@10 taken together."""

from __future__ import annotations

from typing import ClassVar

from pipeline.metrics.base import Metric, Ranked
from pipeline.retrieval.ranks import Floats, Ties

RECALLS = (1, 5, 10)


class RSum(Metric):
    """The sum of the six recalls, at most 600."""

    name, most = "RSUM", 6.0
    summed: ClassVar[float | None] = 1.0
    title = "sum of R@1, R@5 and R@10 of both directions"
    paper = "Faghri et al., BMVC 2018; Chen et al., CVPR 2021"

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        total: Floats = sum((ranked.best.hits(k, ties) for k in RECALLS), start=ranked.best.hits(0, ties))
        return total


class MeanOfSix(RSum):
    """The mean of the six recalls: RSUM / 6."""

    name, most = "mR", 1.0
    summed = 1 / 6
    title = "mean of R@1, R@5 and R@10 of both directions"
    paper = "Geigle et al., TACL 2022"


class MeanRecall(RSum):
    """The mean of one direction's three recalls, as COCO's recalls are summed up."""

    name, most = "mean_recall", 1.0
    summed = None
    title = "mean of R@1, R@5 and R@10"
    paper = "Chun et al., ECCV 2022"

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        return super().of_queries(ranked, ties) / len(RECALLS)
