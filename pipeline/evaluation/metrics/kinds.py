"""The metrics: ranks of a query's best right candidate, and shares and gains of all right ones.

Each is computed by a closed form over all orders of tied candidates. Their definitions, on one
page, are in `tests/evaluation/metrics/metric_definitions.py`.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from pipeline.evaluation.metrics.base import Fold, Metric, Ranked
from pipeline.evaluation.metrics.numbers import RECALLS, Statistic
from pipeline.evaluation.retrieval.placements import NEVER, Placements
from pipeline.evaluation.retrieval.ranks import Floats, Ties
from pipeline.parts.errors import InputError


class MeanRank(Metric):
    """The mean rank of the best right candidate. Source: Karpathy and Fei-Fei, CVPR 2015.

    Ties: the mean rank over all orders.
    """

    name, is_share, less_is_better = "MeanR", False, True

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        if missing := int((ranked.best.greater >= NEVER).sum()):
            raise InputError(
                f"{self}: of {missing} of {len(ranked.best)} queries the run lists no right candidate, so "
                "their rank is not known; leave this metric out, or write a longer run"
            )
        return ranked.best.ranks(ties)


class MedianRank(MeanRank):
    """The median rank of the best right candidate. Source: Karpathy and Fei-Fei, CVPR 2015.

    Ties: the median of expected ranks; for any order of ties it is between --ties optimistic and
        pessimistic.
    """

    name, is_median = "MedR", True


class ReciprocalRank(Metric):
    """The mean reciprocal rank of the best right candidate, 0 beyond a cutoff; `RR` of ir_measures.

    Source: Voorhees, TREC-8, 1999; ties: McSherry and Najork, ECIR 2008.

    Ties: of t tied candidates with r right ones below a others, the first right one is at place a +
        i with the chance C(t - i, r - 1) / C(t, r); the mean of 1 / (a + i) is summed over i.
    """

    name, cutoff = "MRR", "optional"

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        best = ranked.best
        if ties != "expected":
            rank = best.ranks(ties)
            return np.where((rank <= (self.k or NEVER)) & (rank <= NEVER), 1 / rank, 0)
        cases, place = np.unique(
            np.stack([best.greater, best.equal + best.right, best.right]),
            axis=1,
            return_inverse=True,
        )
        return np.array([self._expected(*case) for case in cases.T.tolist()])[place.reshape(-1)]

    def _expected(self, above: int, tied: int, right: int) -> float:
        """The mean of 1 / rank over all orders of the tied candidates."""
        if above >= NEVER:
            return 0.0
        orders = np.arange(1, tied - right + 2)
        # The chances that none of the first i - 1 tied candidates is right, and that none of the
        # first i is.
        none = np.ones(len(orders) + 1)
        for step in range(right):
            none[1:] *= np.maximum(tied - orders - step, 0) / (tied - step)
        chance = none[:-1] - none[1:] if right > 1 else np.full(tied, 1 / tied)
        inside = above + orders <= self.k if self.k is not None else slice(None)
        return float((chance / (above + orders))[inside].sum())


class Hit(Metric):
    """The share of queries with a right candidate among the first K; `Success@K` of ir_measures.

    Source: Hodosh, Young and Hockenmaier, JAIR 2013. Ties: the hypergeometric chance of
        `QueryRanks.hits`.
    """

    name, cutoff = "R", "needed"

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        assert self.k is not None
        return ranked.best.hits(self.k, ties)


class RSum(Metric):
    """The sum of R@1, R@5 and R@10 of both directions, at most 600.

    Source: Faghri et al., BMVC 2018; Chen et al., CVPR 2021.
    """

    name, most = "RSUM", 6.0
    summed: ClassVar[float | None] = 1.0

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        total: Floats = sum(
            (ranked.best.hits(k, ties) for k in RECALLS), start=ranked.best.hits(0, ties)
        )
        return total

    def number(
        self, folds: Sequence[Fold], direction: str, values: Sequence[Floats] | None = None
    ) -> float:
        return self.of(
            {
                Statistic(way, str(metric)): metric.number(folds, way)
                for way in ("i2t", "t2i")
                for metric in map(Hit, RECALLS)
            }
        )

    def of(self, recalls: Mapping[Statistic, float]) -> float:
        """Add up the six recalls."""
        sums = [sum(recalls[Statistic(way, f"R@{k}")] for k in RECALLS) for way in ("i2t", "t2i")]
        return sum(sums) / (self.summed or 1)


class MeanOfSix(RSum):
    """The mean of R@1, R@5 and R@10 of both directions: RSUM / 6. Source: Geigle et al., TACL
    2022.
    """

    name, most = "mR", 1.0
    summed = 6.0


class MeanRecall(RSum):
    """The mean of R@1, R@5 and R@10 in each direction. Source: Chun et al., ECCV 2022."""

    name, most = "mean_recall", 1.0
    summed = None

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        return super().of_queries(ranked, ties) / len(RECALLS)

    def number(
        self, folds: Sequence[Fold], direction: str, values: Sequence[Floats] | None = None
    ) -> float:
        return sum(Hit(k).number(folds, direction) for k in RECALLS) / len(RECALLS)


class Recall(Metric):
    """The share of the right candidates that are among the first K; `R@K` of ir_measures.

    With five captions an image it is at most 0.2 at K = 1. Source: Manning, Raghavan and Schütze,
    Introduction to Information Retrieval, 2008, section 8.3.

    Ties: each of t tied candidates is at each of their places with the same chance.
    """

    name, cutoff, needs_every = "Recall", "needed", True

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        every = ranked.placements
        return _share_found(every, np.full(len(every), self.k), every.count)


class Precision(Metric):
    """The share of the first K candidates that are right; `P@K` of ir_measures.

    Source: Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008, section 8.4.
        Ties: as Recall.
    """

    name, cutoff, needs_every = "P", "needed", True

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        every = ranked.placements
        k = np.full(len(every), self.k)
        return _share_found(every, k, k)


class RPrecision(Metric):
    """The share of the first R candidates that are right, with R right ones; `Rprec` of
    ir_measures.

    With the plausible matches of `--qrels` it is PMRP. Source: as Precision. Ties: as Recall.
    """

    name, needs_every = "Rprec", True

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        every = ranked.placements
        return _share_found(every, every.count, every.count)


def _share_found(every: Placements, k: np.ndarray, of: np.ndarray) -> Floats:
    """How many right candidates of each query are among its first k, int64 [Q], divided by `of`,
    int64 [Q].
    """
    return _mean_of_queries(
        _within(every.above, every.tied, k[every.owner]) / every.tied, every.owner, of
    )


def _mean_of_queries(values: Floats, owner: np.ndarray, count: np.ndarray) -> Floats:
    total = np.bincount(owner, values, minlength=len(count))
    return np.divide(total, count, out=np.zeros(len(count)), where=count > 0)


def _within(above: np.ndarray, tied: np.ndarray, k: np.ndarray | int) -> np.ndarray:
    return np.clip(k - above, 0, tied)


class AveragePrecision(Metric):
    """The average precision, `AP` and `AP@K` of ir_measures.

    Precisions at places up to K are divided by the number of all right candidates. Source: Buckley
    and Voorhees, SIGIR
    2000. Ties: exact, by the formula of McSherry and Najork, ECIR 2008, section 2.3.
    """

    name, cutoff, needs_every = "AP", "optional", True

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        every = ranked.placements
        return _average_precision(
            every, np.full(len(every), every.candidates if self.k is None else self.k)
        )


class AveragePrecisionAtR(Metric):
    """The average precision among the first R candidates, with R right ones; of ECCV Caption.

    Source: Musgrave, Belongie and Lim, ECCV 2020; Chun et al., ECCV 2022. Ties: as AP.
    """

    name, needs_every = "mAP@R", True

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        return _average_precision(ranked.placements, ranked.placements.count)


def _average_precision(every: Placements, k: np.ndarray) -> Floats:
    """The expectation of AP over all orders of tied candidates.

    Of t tied candidates below a others, r are right, and b right ones are above them. At place a +
    i comes a right one with the chance r / t; then (i - 1) (r - 1) / (t - 1) of those before it are
    right, on average. This gives the precision there; its sum over i is computed from harmonic
    numbers.
    """
    query, above, tied, right, before = every.groups()
    inside = _within(above, tied, k[query])
    deepest = int(np.max(above[inside > 0] + inside[inside > 0], initial=0))
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, deepest + 1))])
    start = np.minimum(above, deepest)
    end = np.minimum(start + inside, deepest)
    one = 1 / (start + 1.0)
    reciprocal = np.where(tied == 1, one * inside, harmonic[end] - harmonic[start])
    share = (right - 1) / np.maximum(tied - 1, 1)
    precision = (before + 1) * reciprocal + share * np.where(
        tied == 1, 0, inside - (start + 1) * reciprocal
    )
    return _mean_of_queries(right / tied * precision, query, every.count)


class NDCG(Metric):
    """The normalised discounted cumulative gain, `nDCG` and `nDCG@K` of ir_measures.

    The gain is the grade, the discount 1 / log2(place + 1). Source: Järvelin and Kekäläinen, TOIS
    2002. Ties: the gain of a tied candidate times the mean discount of the tied places (McSherry
    and Najork, ECIR 2008, section 2.5).
    """

    name, cutoff, needs_every = "nDCG", "optional", True

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        every = ranked.placements
        k = every.candidates if self.k is None else min(self.k, every.candidates)
        inside, discounts = _within(every.above, every.tied, k), _discounts(k)
        total = np.concatenate([[0.0], np.cumsum(discounts)])
        start = np.minimum(every.above, k)
        alone = np.concatenate([discounts, [0.0]])[
            start
        ]  # a difference of two sums would lose digits
        gains = (
            every.grade
            / every.tied
            * np.where(every.tied == 1, alone, total[start + inside] - total[start])
        )
        gained = np.bincount(every.owner, gains, minlength=len(every))
        ideal = _ideal(every, k)
        return np.divide(gained, ideal, out=np.zeros(len(every)), where=ideal > 0)


def _discounts(places: int) -> Floats:
    return np.asarray(1 / np.log2(np.arange(2, places + 2)))


def _ideal(every: Placements, k: int) -> Floats:
    owner = every.owner
    sort = np.lexsort((-every.grade, owner))
    place = np.arange(len(owner)) - every.start[owner]
    deepest = int(every.count.max(initial=0))
    discounts = np.where(np.arange(deepest) < k, _discounts(deepest), 0)
    return np.bincount(owner, every.grade[sort] * discounts[place], minlength=len(every)).astype(
        np.float64
    )
