"""Recall@K as information retrieval has it: the share of the right candidates that are among the first K."""

from __future__ import annotations

from pipeline.metrics.base import Metric, Ranked, mean_of_queries, within
from pipeline.retrieval.ranks import Floats, Ties


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
