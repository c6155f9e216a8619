"""Metrics of one query in plain Python, from the grades of its candidates and of an ideal order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Formula = Callable[[np.ndarray, np.ndarray], float]


def hit(k: int) -> Formula:
    return lambda gains, ideal: float((gains[:k] > 0).any())


def share(k: int) -> Formula:
    return lambda gains, ideal: (gains[:k] > 0).sum() / len(ideal)


def ndcg(k: int) -> Formula:
    def gained(gains: np.ndarray) -> float:
        return float((gains[:k] / np.log2(np.arange(len(gains[:k])) + 2)).sum())

    return lambda gains, ideal: gained(gains) / gained(ideal)


def precisions(k: int) -> Formula:
    """The average precision over min(right candidates, k)."""

    def average(gains: np.ndarray, ideal: np.ndarray) -> float:
        total = 0.0
        for place in range(1, k + 1):
            if gains[place - 1] > 0:
                total += (gains[:place] > 0).sum() / place
        return total / min(len(ideal), k)

    return average
