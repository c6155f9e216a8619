"""The metrics: ranks of a query's best right candidate, and shares and gains of all right ones.

Each is computed by a closed form over all orders of tied candidates. Their definitions, on one
page, are in `tests/evaluation/metrics/metric_definitions.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from pipeline.foundation.evaluation.metrics.base import RECALLS, Fold, Metric, Ranked, Statistic
from pipeline.foundation.evaluation.retrieval.placements import NEVER, Placements
from pipeline.foundation.evaluation.retrieval.ranks import Floats, Ties
from pipeline.foundation.parts.errors import InputError

LARGEST_POWER = 50  # The sum of gains up to it keeps the gain of the grade 1.


class MeanRank(Metric):
    """The mean rank of the best right candidate. Source: Karpathy and Fei-Fei, CVPR 2015.

    Ties: the mean rank over all orders.
    """

    name = "MeanR"
    is_share = False
    less_is_better = True

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        best = ranked.best
        missing = int((best.greater >= NEVER).sum())
        if missing:
            raise InputError(
                f"{self}: of {missing} of {len(best)} queries the run lists no right candidate, so "
                "their rank is not known; leave this metric out, or write a longer run"
            )
        return best.ranks(ties)


class MedianRank(MeanRank):
    """The median rank of the best right candidate. Source: Karpathy and Fei-Fei, CVPR 2015.

    Ties: the median of expected ranks; for any order of ties it is between --ties optimistic and
        pessimistic.
    """

    name = "MedR"
    is_median = True


class ReciprocalRank(Metric):
    """The mean reciprocal rank of the best right candidate, 0 beyond a cutoff; `RR` of ir_measures.

    Source: Voorhees, TREC-8, 1999; ties: McSherry and Najork, ECIR 2008.

    Ties: of t tied candidates with r right ones below a others, the first right one is at place a +
        i with the chance C(t - i, r - 1) / C(t, r); the mean of 1 / (a + i) is summed over i.
    """

    name = "MRR"
    cutoff = "optional"

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        best = ranked.best
        if ties != "expected":
            rank = best.ranks(ties)
            listed = (rank <= (self.k or NEVER)) & (rank <= NEVER)
            return np.where(listed, 1 / rank, 0)
        counts = np.stack([best.greater, best.equal + best.right, best.right])
        cases, place = np.unique(counts, axis=1, return_inverse=True)
        expected = np.array([self._expected(*case) for case in cases.T.tolist()])
        return expected[place.reshape(-1)]

    def _expected(self, above: int, tied: int, right: int) -> float:
        """The mean of 1 / rank over all orders of the tied candidates."""
        if above >= NEVER:
            return 0.0
        orders = np.arange(1, tied - right + 2)
        chance = np.full(tied, 1 / tied)
        if right > 1:
            # The chances that none of the first i - 1 tied candidates is right, and that none of
            # the first i is.
            none = np.ones(len(orders) + 1)
            for step in range(right):
                none[1:] *= np.maximum(tied - orders - step, 0) / (tied - step)
            chance = none[:-1] - none[1:]
        places = above + orders
        terms = chance / places
        if self.k is not None:
            terms = terms[places <= self.k]
        return float(terms.sum())


class Hit(Metric):
    """The share of queries with a right candidate among the first K; `Success@K` of ir_measures.

    Source: Hodosh, Young and Hockenmaier, JAIR 2013. Ties: the hypergeometric chance of
        `QueryRanks.hits`.
    """

    name = "R"
    cutoff = "needed"

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        assert self.k is not None
        return ranked.best.hits(self.k, ties)


class RSum(Metric):
    """The sum of R@1, R@5 and R@10 of both directions, at most 600.

    Source: Faghri et al., BMVC 2018; Chen et al., CVPR 2021.
    """

    name = "RSUM"
    most = 6.0
    summed: ClassVar[float | None] = 1.0

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        total = ranked.best.hits(0, ties)
        for k in RECALLS:
            total = total + ranked.best.hits(k, ties)
        return total

    def number(
        self, folds: Sequence[Fold], direction: str, values: Sequence[Floats] | None = None
    ) -> float:
        recalls = {}
        for way in ("i2t", "t2i"):
            for k in RECALLS:
                hit = Hit(k)
                recalls[Statistic(way, str(hit))] = hit.number(folds, way)
        return self.of(recalls)

    def of(self, recalls: Mapping[Statistic, float]) -> float:
        """Add up the six recalls."""
        sums = []
        for way in ("i2t", "t2i"):
            sums.append(sum(recalls[Statistic(way, f"R@{k}")] for k in RECALLS))
        return sum(sums) / (self.summed or 1)


class MeanOfSix(RSum):
    """The mean of R@1, R@5 and R@10 of both directions: RSUM / 6. Source: Geigle et al., TACL
    2022.
    """

    name = "mR"
    most = 1.0
    summed = 6.0


class MeanRecall(RSum):
    """The mean of R@1, R@5 and R@10 in each direction. Source: Chun et al., ECCV 2022."""

    name = "mean_recall"
    most = 1.0
    summed = None

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        return super().of_queries(ranked, ties) / len(RECALLS)

    def number(
        self, folds: Sequence[Fold], direction: str, values: Sequence[Floats] | None = None
    ) -> float:
        recalls = [Hit(k).number(folds, direction) for k in RECALLS]
        return sum(recalls) / len(RECALLS)


class Recall(Metric):
    """The share of the right candidates that are among the first K; `R@K` of ir_measures.

    With five captions an image it is at most 0.2 at K = 1. Source: Manning, Raghavan and Schütze,
    Introduction to Information Retrieval, 2008, section 8.3.

    Ties: each of t tied candidates is at each of their places with the same chance.
    """

    name = "Recall"
    cutoff = "needed"
    needs_every = True

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        placements = ranked.placements
        k = np.full(len(placements), self.k)
        return _share_found(placements, k, placements.count)


class Precision(Metric):
    """The share of the first K candidates that are right; `P@K` of ir_measures.

    Source: Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008, section 8.4.
        Ties: as Recall.
    """

    name = "P"
    cutoff = "needed"
    needs_every = True

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        placements = ranked.placements
        k = np.full(len(placements), self.k)
        return _share_found(placements, k, k)


class RPrecision(Metric):
    """The share of the first R candidates that are right, with R right ones; `Rprec` of
    ir_measures.

    With the plausible matches of `--qrels` it is PMRP. Source: as Precision. Ties: as Recall.
    """

    name = "Rprec"
    needs_every = True

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        placements = ranked.placements
        return _share_found(placements, placements.count, placements.count)


def _share_found(placements: Placements, k: np.ndarray, of: np.ndarray) -> Floats:
    """How many right candidates of each query are among its first k, int64 [Q], divided by `of`,
    int64 [Q].
    """
    inside = _within(placements.above, placements.tied, k[placements.owner])
    return _mean_of_queries(inside / placements.tied, placements.owner, of)


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

    name = "AP"
    cutoff = "optional"
    needs_every = True

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        placements = ranked.placements
        k = self.k
        if k is None:
            k = placements.candidates
        return _average_precision(placements, np.full(len(placements), k))


class AveragePrecisionOfPossible(Metric):
    """The average precision among the first K, divided by as many right candidates as K can have.

    Source: `map@K` of sentence-transformers' evaluators, and of VLM2Vec's of MMEB. Ties: as AP.
    """

    name = "AP_min"
    cutoff = "needed"
    needs_every = True

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        assert self.k is not None
        placements = ranked.placements
        right = placements.count
        possible = np.minimum(right, self.k)
        by_all = _average_precision(placements, np.full(len(placements), self.k))
        return by_all * np.divide(right, possible, out=np.ones(len(right)), where=possible > 0)


class AveragePrecisionAtR(Metric):
    """The average precision among the first R candidates, with R right ones; of ECCV Caption.

    Source: Musgrave, Belongie and Lim, ECCV 2020; Chun et al., ECCV 2022. Ties: as AP.
    """

    name = "mAP@R"
    needs_every = True

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        return _average_precision(ranked.placements, ranked.placements.count)


def _average_precision(placements: Placements, k: np.ndarray) -> Floats:
    """The expectation of AP over all orders of tied candidates.

    Of t tied candidates below a others, r are right, and b right ones are above them. At place a +
    i comes a right one with the chance r / t; then (i - 1) (r - 1) / (t - 1) of those before it are
    right, on average. This gives the precision there; its sum over i is computed from harmonic
    numbers.
    """
    query, above, tied, right, before = placements.groups()
    inside = _within(above, tied, k[query])
    deepest = int(np.max(above[inside > 0] + inside[inside > 0], initial=0))
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, deepest + 1))])
    start = np.minimum(above, deepest)
    end = np.minimum(start + inside, deepest)
    alone = tied == 1
    first = 1 / (start + 1.0)
    reciprocal = np.where(alone, first * inside, harmonic[end] - harmonic[start])
    share = (right - 1) / np.maximum(tied - 1, 1)
    tied_before = np.where(alone, 0, inside - (start + 1) * reciprocal)
    precision = (before + 1) * reciprocal + share * tied_before
    return _mean_of_queries(right / tied * precision, query, placements.count)


class NDCG(Metric):
    """The normalised discounted cumulative gain, `nDCG` and `nDCG@K` of ir_measures.

    The gain is the grade, the discount 1 / log2(place + 1). Source: Järvelin and Kekäläinen, TOIS
    2002. Ties: the gain of a tied candidate times the mean discount of the tied places (McSherry
    and Najork, ECIR 2008, section 2.5).
    """

    name = "nDCG"
    cutoff = "optional"
    needs_every = True

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        placements = ranked.placements
        tied = placements.tied
        k = placements.candidates
        if self.k is not None:
            k = min(self.k, k)
        inside = _within(placements.above, tied, k)
        discounts = _discounts(k)
        total = np.concatenate([[0.0], np.cumsum(discounts)])
        start = np.minimum(placements.above, k)
        # The discount of one place: a difference of two sums would lose digits.
        alone = np.concatenate([discounts, [0.0]])[start]
        discount = np.where(tied == 1, alone, total[start + inside] - total[start])
        gains = placements.grade / tied * discount
        queries = len(placements)
        gained = np.bincount(placements.owner, gains, minlength=queries)
        ideal = _ideal(placements, k)
        return np.divide(gained, ideal, out=np.zeros(queries), where=ideal > 0)


class ExponentialNDCG(NDCG):
    """nDCG with the gain 2 to the power of the grade, less 1.

    `ndcg_burges` of ranx, `ndcg_exponential` of MMEB. Source: Burges et al., ICML 2005. Ties: as
        nDCG.
    """

    name = "nDCG_exp"

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        placements = ranked.placements
        largest = placements.grade.max(initial=0)
        if largest > LARGEST_POWER:
            raise InputError(
                f"{self}: 2 to the power of the grade {largest:g} is too large to sum; use smaller grades, or "
                "nDCG"
            )
        gain = np.exp2(placements.grade) - 1
        return super().of_queries(replace(ranked, every=replace(placements, grade=gain)), ties)


def _discounts(places: int) -> Floats:
    return np.asarray(1 / np.log2(np.arange(2, places + 2)))


def _ideal(placements: Placements, k: int) -> Floats:
    owner = placements.owner
    order = np.lexsort((-placements.grade, owner))
    place = np.arange(len(owner)) - placements.start[owner]
    deepest = int(placements.count.max(initial=0))
    discounts = np.where(np.arange(deepest) < k, _discounts(deepest), 0)
    gains = placements.grade[order] * discounts[place]
    return np.bincount(owner, gains, minlength=len(placements)).astype(np.float64)
