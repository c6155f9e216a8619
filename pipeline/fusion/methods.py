"""Fusions by name: how the scores of several systems, of one shape and order, become one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from pipeline.errors import InputError
from pipeline.fusion.combined import CombMNZ, CombSum
from pipeline.fusion.combining import mean
from pipeline.fusion.reciprocal import RankFusion
from pipeline.fusion.standardised import ZScores
from pipeline.retrieval.similarity import PerDirection, Similarity

Sources: TypeAlias = Sequence[Similarity | PerDirection]

FUSIONS: dict[str, Callable[[Sources, list[float]], Similarity | PerDirection]] = {
    "mean": mean,
    "zscore": ZScores,
    "rank": RankFusion,
    "combsum": CombSum,
    "combmnz": CombMNZ,
}
BY_ORDER = ("rank",)
"""Fusions that depend on nothing but the order of each query's candidates."""


def shares(weights: Sequence[float] | None, count: int) -> list[float]:
    """Scale weights to add up to 1.

    Args:
        weights: Numbers from 0 up, not all 0; None for equal ones.
        count: How many are expected.

    Returns:
        The shares.

    Raises:
        InputError: If there are more or fewer than `count`, or if one cannot be a weight.
    """
    weights = [1.0] * count if weights is None else list(weights)
    if len(weights) != count:
        raise InputError(f"expected one weight for each of {count} members, received {len(weights)}")
    total = math.fsum(weights)
    if not (all(0 <= weight < math.inf for weight in weights) and 0 < total < math.inf):
        raise InputError(f"expected finite weights from 0 up, not all 0, received {weights}")
    return [weight / total for weight in weights]
