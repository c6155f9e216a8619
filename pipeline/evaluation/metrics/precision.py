"""P@K, R-Precision and average precision: the share of the first candidates that are right."""

import numpy as np

from pipeline.evaluation.metrics.base import Metric, Ranked, mean_of_queries, within
from pipeline.evaluation.retrieval.placements import Placements
from pipeline.evaluation.retrieval.ranks import Floats, Ties


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


class AveragePrecision(Metric):
    """`AP` and `AP@K` of ir_measures: precisions at places up to K, divided by the number of all right candidates.

    Ties: exact, by the formula of McSherry and Najork.
    """

    name, cutoff, needs_every = "AP", "optional", True
    title = "average precision"
    paper = "Buckley and Voorhees, SIGIR 2000; ties: McSherry and Najork, ECIR 2008, section 2.3"

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        every = ranked.placements
        return average_precision(every, np.full(len(every), every.candidates if self.k is None else self.k))


class AveragePrecisionAtR(Metric):
    """mAP@R: AP with the cutoff R, the number of the query's right candidates; of ECCV Caption.

    Ties: as AP.
    """

    name, needs_every = "mAP@R", True
    title = "average precision among the first R candidates, with R right ones"
    paper = "Musgrave, Belongie and Lim, ECCV 2020; Chun et al., ECCV 2022"

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        return average_precision(ranked.placements, ranked.placements.count)


def average_precision(every: Placements, k: np.ndarray) -> Floats:
    """The expectation of AP over all orders of tied candidates.

    Of t tied candidates below a others, r are right, and b right ones are above them. At place a + i stands a right one
    with the chance r / t; then (i - 1) (r - 1) / (t - 1) of those before it are right, on average. Hence the precision
    there, and its sum over i, which harmonic numbers give.
    """
    query, above, tied, right, before = every.groups()
    inside = within(above, tied, k[query])
    places = int(np.max(above[inside > 0] + inside[inside > 0], initial=0))
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, places + 1))])
    start = np.minimum(above, places)
    end = np.minimum(start + inside, places)
    one = 1 / (start + 1.0)
    reciprocal = np.where(tied == 1, one * inside, harmonic[end] - harmonic[start])
    share = (right - 1) / np.maximum(tied - 1, 1)
    precision = (before + 1) * reciprocal + share * np.where(tied == 1, 0, inside - (start + 1) * reciprocal)
    return mean_of_queries(right / tied * precision, query, every.count)
