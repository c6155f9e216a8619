"""What each metric is, in plain numpy, on one page. The fast path is tested against it.

Args:
    grades: [N], the grades of a query's candidates in the order in which the system ranks them; 0
        for a wrong one.
    k: The cutoff; None: all candidates.

Returns:
    The metric's value for this query.
"""

from collections.abc import Callable
from itertools import pairwise, permutations

import numpy as np


def rank(grades: np.ndarray) -> int:
    """The place of the best right candidate, from 1."""
    return int(np.flatnonzero(grades)[0]) + 1


def hit(grades: np.ndarray, k: int) -> float:
    """R@K of the papers: 1 if a right candidate is among the first K."""
    return float(rank(grades) <= k)


def recall(grades: np.ndarray, k: int) -> float:
    """The share of the right candidates that are among the first K."""
    return np.count_nonzero(grades[:k]) / np.count_nonzero(grades)


def precision(grades: np.ndarray, k: int) -> float:
    """The share of the first K candidates that are right."""
    return np.count_nonzero(grades[:k]) / k


def r_precision(grades: np.ndarray, k: None = None) -> float:
    """The precision at R, where R candidates are right."""
    return precision(grades, int(np.count_nonzero(grades)))


def reciprocal_rank(grades: np.ndarray, k: int | None = None) -> float:
    """1 / rank; 0 beyond the cutoff."""
    return 1 / rank(grades) if k is None or rank(grades) <= k else 0.0


def average_precision(grades: np.ndarray, k: int | None = None) -> float:
    """The precision at the place of each right candidate, summed and divided by the number of right
    candidates.
    """
    places = (np.flatnonzero(grades[:k]) + 1).tolist()
    return sum(precision(grades, place) for place in places) / np.count_nonzero(grades)


def average_precision_of_possible(grades: np.ndarray, k: int) -> float:
    """The same sum, divided by as many right candidates as can be among the first K."""
    right = np.count_nonzero(grades)
    return average_precision(grades, k) * right / min(right, k)


def average_precision_at_r(grades: np.ndarray, k: None = None) -> float:
    """The average precision among the first R candidates, where R are right."""
    return average_precision(grades, int(np.count_nonzero(grades)))


def ndcg(grades: np.ndarray, k: int | None = None) -> float:
    """The gain of the first K, each grade divided by log2(place + 1), beside that of the best
    order.
    """

    def gain(ordered: np.ndarray) -> float:
        return float((ordered[:k] / np.log2(np.arange(len(ordered[:k])) + 2)).sum())

    return gain(grades) / gain(np.sort(grades)[::-1])


def exponential_ndcg(grades: np.ndarray, k: int | None = None) -> float:
    """nDCG with the gain 2 ** grade - 1."""
    return ndcg(2.0**grades - 1, k)


DEFINITIONS: dict[str, Callable[..., float]] = {
    "R": hit,
    "Recall": recall,
    "P": precision,
    "MRR": reciprocal_rank,
    "nDCG": ndcg,
    "nDCG_exp": exponential_ndcg,
    "AP": average_precision,
    "AP_min": average_precision_of_possible,
    "mAP@R": average_precision_at_r,
    "Rprec": r_precision,
    "MeanR": lambda grades, k: float(rank(grades)),
}
"""A metric's name -> its value for one query. The others are made from these, see `summary`."""


def orders(scores: np.ndarray) -> list[list[int]]:
    """All orders of the candidates in which no candidate stands above one of a higher score."""
    return [
        list(order)
        for order in permutations(range(len(scores)))
        if all(scores[first] >= scores[second] for first, second in pairwise(order))
    ]


def summary(scores: np.ndarray, right: np.ndarray) -> dict[str, float]:
    """The numbers of a paper's table, in percent, for scores without ties."""
    numbers = {}
    for way, asked, truth in (("i2t", scores, right), ("t2i", scores.T, right.T)):
        ranked = [
            grades[np.argsort(-row)]
            for row, grades in zip(asked, truth, strict=True)
            if grades.any()
        ]
        for k in (1, 5, 10):
            numbers[f"{way} R@{k}"] = 100 * float(np.mean([hit(grades, k) for grades in ranked]))
        numbers[f"{way} MedR"] = float(np.median([rank(grades) for grades in ranked]))
        numbers[f"{way} MeanR"] = float(np.mean([rank(grades) for grades in ranked]))
    six = [value for name, value in numbers.items() if "R@" in name]
    return numbers | {"RSUM": sum(six), "mR": sum(six) / 6}
