"""P@K: the share of the first K candidates that are right."""

from __future__ import annotations

import numpy as np

from pipeline.metrics.base import Metric, Ranked, mean_of_queries, within
from pipeline.retrieval.ranks import Floats, Ties


class Precision(Metric):
    """`P@K` of ir_measures.

    Ties: as Recall.
    """

    name, cutoff, needs_every = "P", "needed", True
    title = "share of the first K candidates that are right"
    paper = "Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008, section 8.4"

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        assert self.k is not None
        every = ranked.placements
        found = within(every.above, every.tied, self.k) / every.tied
        return mean_of_queries(found, every.owner, np.full(len(every), self.k))
