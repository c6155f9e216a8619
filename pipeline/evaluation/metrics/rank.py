"""Median, mean and reciprocal rank of the best right candidate, from 1."""

import numpy as np

from pipeline.evaluation.metrics.base import Metric, Ranked
from pipeline.evaluation.retrieval.placements import NEVER
from pipeline.evaluation.retrieval.ranks import Floats, Ties
from pipeline.parts.errors import InputError


class MeanRank(Metric):
    """The mean over queries.

    Ties: the mean rank over all orders.
    """

    name, is_share, less_is_better = "mean_rank", False, True
    title = "mean rank of the best right candidate"
    paper = "Karpathy and Fei-Fei, CVPR 2015"

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        if missing := int((ranked.best.greater >= NEVER).sum()):
            raise InputError(f"{self}: of {missing} of {len(ranked.best)} queries the run lists no right candidate, so "
                             "their rank is not known; leave this metric out, or write a longer run")
        return ranked.best.ranks(ties)


class MedianRank(MeanRank):
    """The median over queries of their mean ranks over all orders of tied candidates."""

    name, is_median = "median_rank", True
    title = "median rank of the best right candidate"
    bounded = "the median of expected ranks; for any order of ties it lies between --ties optimistic and pessimistic"


class ReciprocalRank(Metric):
    """`RR` of ir_measures; with a cutoff, 0 where the rank is beyond it.

    Ties: of t tied candidates with r right ones below a others, the first right one is at place a + i with the chance
    C(t - i, r - 1) / C(t, r); the mean of 1 / (a + i) is summed over i.
    """

    name, cutoff = "MRR", "optional"
    title = "mean reciprocal rank of the best right candidate"
    paper = "Voorhees, TREC-8, 1999; ties: McSherry and Najork, ECIR 2008"

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        best = ranked.best
        if ties != "expected":
            rank = best.ranks(ties)
            return np.where((rank <= (self.k or NEVER)) & (rank <= NEVER), 1 / rank, 0)
        cases, place = np.unique(np.stack([best.greater, best.equal + best.right, best.right]), axis=1,
                                 return_inverse=True)
        return np.array([self._expected(*case) for case in cases.T.tolist()])[place.reshape(-1)]

    def _expected(self, above: int, tied: int, right: int) -> float:
        """The mean of 1 / rank over all orders of the tied candidates."""
        if above >= NEVER:
            return 0.0
        places = np.arange(1, tied - right + 2)
        # Chance that none of the first i - 1 tied ones is right, and that none of the first i is.
        none = np.ones(len(places) + 1)
        for step in range(right):
            none[1:] *= np.maximum(tied - places - step, 0) / (tied - step)
        chance = none[:-1] - none[1:] if right > 1 else np.full(tied, 1 / tied)
        inside = above + places <= self.k if self.k is not None else slice(None)
        return float((chance / (above + places))[inside].sum())
