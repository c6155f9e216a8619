"""nDCG: gains by grade, discounted by the logarithm of the place, relative to the best order."""

import numpy as np

from pipeline.evaluation.metrics.base import Metric, Ranked, within
from pipeline.evaluation.retrieval.placements import Placements
from pipeline.evaluation.retrieval.ranks import Floats, Ties


class NDCG(Metric):
    """`nDCG` and `nDCG@K` of ir_measures: the gain is the grade, the discount 1 / log2(place + 1).

    Ties: the gain of a tied candidate times the mean discount of the tied places.
    """

    name, cutoff, needs_every = "nDCG", "optional", True
    title = "normalised discounted cumulative gain"
    paper = "Järvelin and Kekäläinen, TOIS 2002; ties: McSherry and Najork, ECIR 2008, section 2.5"

    def of_queries(self, ranked: Ranked, ties: Ties) -> Floats:
        every = ranked.placements
        k = every.candidates if self.k is None else min(self.k, every.candidates)
        gained = np.bincount(every.owner, _gains(every, k), minlength=len(every))
        ideal = _ideal(every, k)
        return np.divide(gained, ideal, out=np.zeros(len(every)), where=ideal > 0)


def _discounts(places: int) -> Floats:
    """The discounts of places 1 to `places`."""
    return np.asarray(1 / np.log2(np.arange(2, places + 2)))


def _gains(every: Placements, k: int) -> Floats:
    """The expected discounted gain of each right candidate: float64 [P]."""
    inside = within(every.above, every.tied, k)
    discounts = _discounts(k)
    total = np.concatenate([[0.0], np.cumsum(discounts)])
    start = np.minimum(every.above, k)
    alone = np.concatenate([discounts, [0.0]])[start]  # a difference of sums would lose digits
    return every.grade / every.tied * np.where(every.tied == 1, alone, total[start + inside] - total[start])


def _ideal(every: Placements, k: int) -> Floats:
    """The discounted gain of the best order: float64 [Q]."""
    owner = every.owner
    sort = np.lexsort((-every.grade, owner))
    place = np.arange(len(owner)) - every.start[owner]
    deepest = int(every.count.max(initial=0))
    discounts = np.where(np.arange(deepest) < k, _discounts(deepest), 0)
    return np.bincount(owner, every.grade[sort] * discounts[place], minlength=len(every)).astype(np.float64)
