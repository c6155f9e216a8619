"""Fusions by name: how the scores of several systems, of one shape and order, become one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from pipeline.evaluation.retrieval.blocks import Cells, Index
from pipeline.evaluation.retrieval.similarity import Direction, PerDirection, Similarity
from pipeline.parts.errors import InputError
from pipeline.systems.fusion.combining import PerQuery, mean, of_direction
from pipeline.systems.fusion.reciprocal import RankFusion, ReciprocalRanks
from pipeline.systems.fusion.standardised import ScaledPerQuery, ZScores, ranges

LISTED = 100
"""How many candidates a system lists, for CombMNZ."""


class CombSum(ScaledPerQuery):
    """The weighted sum of sources whose scores run from 0 to 1 among each query's candidates.

    Source: Fox and Shaw, TREC-2, 1994; scaling: Lee, SIGIR 1997.
    """

    measure = staticmethod(ranges)


class CombMNZ(PerQuery):
    """CombSUM over the candidates that each system lists, times the number of systems that list a candidate.

    Each system lists its best `LISTED` candidates. If all systems listed all candidates, the order would be CombSUM's.
    """

    def direction(self, name: Direction, block_bytes: int) -> _Listed:
        return _Listed([of_direction(source, name, block_bytes) for source in self.sources], self.weights,
                       name == "i2t", block_bytes)


class _Listed(ReciprocalRanks):
    """CombMNZ of one direction, block by block of whole queries."""

    def queries(self, which: Index) -> Cells:
        total: Cells = np.zeros(1)
        systems: Cells = np.zeros(1)
        for source, weight in zip(self.sources, self.weights, strict=True):
            scaled, listed = _scaled(self.of_source(source, which).astype(np.float64))
            total, systems = total + weight * scaled, systems + listed
        return total * systems


def _scaled(scores: Cells) -> tuple[Cells, Cells]:
    """Scale the listed scores of each query [Q, n] to 0 to 1 and set the others to 0; also return which are listed."""
    count = min(LISTED, scores.shape[1])
    least = np.partition(scores, -count, axis=1)[:, -count, None]
    greatest = scores.max(1, keepdims=True)
    listed = scores >= least
    span = np.where(greatest > least, greatest - least, 1)
    return np.where(listed, np.where(greatest > least, (scores - least) / span, 1.0), 0.0), listed


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
