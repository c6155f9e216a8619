"""R-Precision: the share of the first R candidates that are right, where R of them are."""

from __future__ import annotations

from pipeline.metrics.base import Metric, Ranked, mean_of_queries, within
from pipeline.retrieval.ranks import Floats, Ties


class RPrecision(Metric):
    """`Rprec` of ir_measures; with the plausible matches of `--truth` it is PMRP.

    Ties: as Recall.
    """

    name, needs_every = "Rprec", True
    title = "share of the first R candidates that are right, with R right ones"
    paper = "Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008, section 8.4"

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        every = ranked.placements
        found = within(every.above, every.tied, every.count[every.owner]) / every.tied
        return mean_of_queries(found, every.owner, every.count)
