"""R@K of image-text retrieval: whether any right candidate is among the first K."""

from __future__ import annotations

from pipeline.metrics.base import Metric, Ranked
from pipeline.retrieval.ranks import Floats, Ties


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
