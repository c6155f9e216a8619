"""Median and mean rank of the best right candidate, from 1."""

from __future__ import annotations

from pipeline.errors import InputError
from pipeline.metrics.base import Metric, Ranked
from pipeline.retrieval.placements import NEVER
from pipeline.retrieval.ranks import Floats, Ties


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
