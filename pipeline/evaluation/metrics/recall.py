"""R@K, Recall@K and their sums: whether a right candidate is among the first K, and what share of the right ones."""

from typing import ClassVar

from pipeline.evaluation.metrics.base import Metric, Ranked, mean_of_queries, within
from pipeline.evaluation.retrieval.ranks import Floats, Ties


class Recall(Metric):
    """With five captions an image it is at most 0.2 at K = 1; `R@K` of ir_measures.

    Ties: each of t tied candidates is at each of their places with the same chance.
    """

    name, cutoff, needs_every = "Recall", "needed", True
    title = "share of the right candidates that are among the first K"
    paper = "Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008, section 8.3"

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        assert self.k is not None
        every = ranked.placements
        found = within(every.above, every.tied, self.k) / every.tied
        return mean_of_queries(found, every.owner, every.count)


class Hit(Metric):
    """A query hits where its best right candidate is among the first K; `Success@K` of ir_measures.

    Ties: the hypergeometric chance of `QueryRanks.hits`.
    """

    name, cutoff = "R", "needed"
    title = "share of queries with a right candidate among the first K"
    paper = "Hodosh, Young and Hockenmaier, JAIR 2013"

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        assert self.k is not None
        return ranked.best.hits(self.k, ties)


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
