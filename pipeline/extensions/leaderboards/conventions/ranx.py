"""ranx."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from pipeline.foundation.evaluation.retrieval import Floats, Ids
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores import conventions
from pipeline.judge.systems.scores.conventions import Asked, Formula, OfLists, Ordered

COMPARABLE = "make_comparable"
# A part of the list that is not longer is sorted by insertion.
SHORT = 15


def _hits(ordered: Ordered, k: int) -> float:
    return float(ordered.found(k))


def _f1(ordered: Ordered, k: int) -> float:
    found = ordered.found(k)
    # 2 P R / (P + R), with P = found / k and R = found / right ones
    return 2 * found / (k + len(ordered.ideal))


def _length(ordered: Ordered) -> int:
    return max(len(ordered.gain), 1)


class Ranx(OfLists):
    """ranx: scores of 64 bits in the order of a quicksort, which moves ties.

    `make_comparable` is its option: judged queries that the run lacks find nothing, other queries
    of the run are left out, and each list is sorted a second time. Without it, ranx refuses queries
    that differ.

    Source:
        metrics/*.py and data_structures/*.py of ranx 0.3.21, with the argsort of numba.
    """

    ties = "equal scores as its quicksort leaves them"
    options = (COMPARABLE,)
    level = 1
    has_whole_grades = True
    whole: ClassVar[Mapping[str, Formula]] = {
        "map": conventions.average_precision,
        "mrr": conventions.reciprocal_rank,
        "ndcg": conventions.linear_ndcg,
        "ndcg_burges": conventions.exponential_ndcg,
        "r-precision": conventions.r_precision,
        "hits": _hits,
        "hit_rate": conventions.hit,
        "recall": conventions.share,
        "precision": lambda ordered, _: conventions.precision(ordered, _length(ordered)),
        "f1": lambda ordered, _: _f1(ordered, _length(ordered)),
    }
    at: ClassVar[Mapping[str, Formula]] = {
        "map": conventions.average_precision,
        "mrr": conventions.reciprocal_rank,
        "ndcg": conventions.linear_ndcg,
        "ndcg_burges": conventions.exponential_ndcg,
        "hits": _hits,
        "hit_rate": conventions.hit,
        "recall": conventions.share,
        "precision": conventions.precision,
        "f1": _f1,
    }
    shown = (
        "map",
        "mrr",
        "ndcg",
        *(f"{name}@{k}" for name in ("ndcg", "ndcg_burges", "map") for k in (5, 10)),
        *(f"{name}@{k}" for name in ("recall", "hit_rate", "precision") for k in (1, 5, 10)),
    )

    def queries(self, path: Path, listed: Sequence[str], judged: Sequence[str]) -> list[str]:
        if COMPARABLE in self.chosen:
            return list(judged)
        if set(listed) != set(judged):
            raise InputError(
                f"{path}: has other queries than the judgements, which ranx refuses; --as "
                f"ranx:{COMPARABLE} takes the judged ones"
            )
        return list(listed)

    def order(self, asked: Asked) -> Ids:
        order = quicksorted(-asked.scores)
        if COMPARABLE in self.chosen:
            order = order[quicksorted(-asked.scores[order])]
        return order


def quicksorted(values: Floats) -> Ids:
    """The order of values as numba's argsort leaves it: quicksort by the median of three, with
    insertion in short parts. Equal values may change places.
    """
    if len(np.unique(values)) == len(values):
        return np.argsort(values)
    value = values.tolist()
    order = list(range(len(value)))
    parts = [(0, len(order) - 1)]
    while parts:
        low, high = parts.pop()
        while high - low >= SHORT:
            middle = _parted(value, order, low, high)
            left = (low, middle - 1)
            right = (middle + 1, high)
            longer, shorter = left, right
            if high - middle > middle - low:
                longer, shorter = right, left
            if longer[0] <= longer[1]:
                parts.append(longer)
            low, high = shorter
        # Python's sort is stable, as insertion is.
        order[low : high + 1] = sorted(order[low : high + 1], key=value.__getitem__)
    return np.array(order, np.int64)


def _parted(value: Sequence[float], order: list[int], low: int, high: int) -> int:
    """Part a range of the order around the median of its ends and its middle; where that is
    then.
    """
    middle = (low + high) // 2
    for first, second in ((low, middle), (middle, high), (low, middle)):
        if value[order[second]] < value[order[first]]:
            order[first], order[second] = order[second], order[first]
    pivot = value[order[middle]]
    order[high], order[middle] = order[middle], order[high]
    left = low
    right = high - 1
    while True:
        while left < high and value[order[left]] < pivot:
            left += 1
        while right >= low and pivot < value[order[right]]:
            right -= 1
        if left >= right:
            break
        order[left], order[right] = order[right], order[left]
        left += 1
        right -= 1
    order[left], order[high] = order[high], order[left]
    return left
