"""Fusions by name: how the scores of several systems, of one shape and order, become one."""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from pipeline.foundation.evaluation.retrieval import (
    Cells,
    Direction,
    Floats,
    Ids,
    Index,
    Scores,
    Similarity,
)
from pipeline.foundation.evaluation.retrieval.similarity import of_direction
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.fusion.combining import PerQuery, QueryByQuery, joint, mean
from pipeline.judge.systems.fusion.standardised import Lines, ScaledPerQuery, ZScores

OFFSET = 60  # Cormack, Clarke and Büttcher (SIGIR 2009)

# Scores that are sorted at a time: packed, half a megabyte.
CACHED_CELLS = 1 << 16
# How many candidates a system lists, for CombMNZ.
LISTED = 100


class ReciprocalRanks(QueryByQuery):
    """The weighted sum over sources of 1 / (60 + rank) among each query's candidates; ties share
    their mean rank.
    """

    def __init__(
        self,
        sources: Sequence[Similarity],
        weights: Sequence[float],
        by_image: bool,
        block_bytes: int,
    ) -> None:
        super().__init__(sources[0].shape, by_image, block_bytes)
        self.sources = sources
        self.weights = weights
        self.equal = joint(sources)

    def queries(self, which: Index) -> Cells:
        total: Cells = np.zeros(1)
        for source, weight in zip(self.sources, self.weights, strict=True):
            scores = np.ascontiguousarray(self.of_source(source, which))
            total = total + reciprocal_ranks(scores, weight)
        return total


def reciprocal_ranks(scores: np.ndarray, weight: float = 1) -> Floats:
    """Compute weight / (60 + rank) of each candidate; tied candidates share their mean rank."""
    queries, candidates = scores.shape
    ranks = np.arange(1, candidates + 1)
    by_rank = weight / (OFFSET + ranks)
    of_candidates = np.empty(scores.shape)
    at_once = max(1, CACHED_CELLS // candidates)
    for start in range(0, queries, at_once):
        part = slice(start, start + at_once)
        key, place = _descending(scores[part])
        worth = np.broadcast_to(by_rank, place.shape).copy()
        _share(worth, key, weight)
        np.put_along_axis(of_candidates[part], place, worth, 1)
    return of_candidates


def _share(worth: Floats, key: np.ndarray, weight: float) -> None:
    """Give tied candidates, neighbours with equal `key`, the value of their mean rank; `worth` is
    changed in place.
    """
    tied_with_next = np.flatnonzero(key[:, 1:] == key[:, :-1])
    if not len(tied_with_next):
        return
    candidates = key.shape[1]
    row, place = np.divmod(tied_with_next, candidates - 1)
    is_other_row = np.diff(row) != 0
    is_no_neighbour = np.diff(place) != 1
    begins = np.flatnonzero(np.append(True, is_other_row | is_no_neighbour))
    tied = np.diff(begins, append=len(row)) + 1
    first = row[begins] * candidates + place[begins]
    earlier = np.cumsum(tied) - tied
    within = np.arange(tied.sum()) - np.repeat(earlier, tied)
    cells = np.repeat(first, tied) + within
    mean_rank = place[begins] + (tied + 1) / 2
    worth_of_mean = weight / (OFFSET + mean_rank)
    worth.reshape(-1)[cells] = np.repeat(worth_of_mean, tied)


def _descending(scores: np.ndarray) -> tuple[np.ndarray, Ids]:
    """Sort each row, largest score first; return sort keys [Q, n] that are equal where scores are,
    and the candidates.

    A float32's bits and its position are packed into an int64. Sorting these is several times
    faster than sorting positions by score.
    """
    if scores.dtype != np.float32:
        place = np.argsort(-scores, kind="stable")
        return np.take_along_axis(scores, place, 1), place
    bits = (scores + np.float32(0)).view(np.int32)  # -0.0 becomes 0.0
    # Read as integers, floats above 0 are in ascending order, those below in descending; this puts
    # all in descending.
    below_zero = (bits >> 31) & 0x7FFFFFFF
    descending = ~(bits ^ below_zero)
    packed = descending.astype(np.int64)
    packed <<= 32
    packed |= np.arange(scores.shape[1])
    packed.sort()
    return (packed >> 32).astype(np.int32), packed & 0xFFFFFFFF


class RankFusion(PerQuery):
    """The weighted sum of reciprocal ranks among each query's candidates."""

    whole_queries: type[ReciprocalRanks] = ReciprocalRanks

    def direction(self, name: Direction, block_bytes: int) -> ReciprocalRanks:
        sources = [of_direction(source, name, block_bytes) for source in self.sources]
        return self.whole_queries(sources, self.weights, name == "i2t", block_bytes)


class CombSum(ScaledPerQuery):
    """The weighted sum of sources whose scores run from 0 to 1 among each query's candidates.

    Source: Fox and Shaw, TREC-2, 1994; scaling: Lee, SIGIR 1997.
    """

    scaled = staticmethod(Lines.ranges)


class _Listed(ReciprocalRanks):
    """CombMNZ of one direction, block by block of whole queries."""

    def queries(self, which: Index) -> Cells:
        total: Cells = np.zeros(1)
        systems: Cells = np.zeros(1)
        for source, weight in zip(self.sources, self.weights, strict=True):
            scores = self.of_source(source, which)
            scaled, listed = _scaled(scores.astype(np.float64))
            total = total + weight * scaled
            systems = systems + listed
        return total * systems


def _scaled(scores: Cells) -> tuple[Cells, Cells]:
    """Scale the listed scores of each query [Q, n] to 0 to 1 and set the others to 0; also return
    which are listed.
    """
    count = min(LISTED, scores.shape[1])
    least = np.partition(scores, -count, axis=1)[:, -count, None]
    greatest = scores.max(1, keepdims=True)
    listed = scores >= least
    differs = greatest > least
    span = np.where(differs, greatest - least, 1)
    scaled = np.where(differs, (scores - least) / span, 1.0)
    return np.where(listed, scaled, 0.0), listed


class CombMNZ(RankFusion):
    """CombSUM over the candidates that each system lists, times the number of systems that list a
    candidate.

    Each system lists its best `LISTED` candidates. If all systems listed all candidates, the order
    would be CombSUM's.
    """

    whole_queries = _Listed


Sources: TypeAlias = Sequence[Scores]

FUSIONS: dict[str, Callable[[Sources, list[float]], Scores]] = {
    "mean": mean,
    "zscore": ZScores,
    "rank": RankFusion,
    "combsum": CombSum,
    "combmnz": CombMNZ,
}
# Fusions that depend on the order of each query's candidates alone.
BY_ORDER = ("rank",)


def shares(weights: Sequence[float] | None, count: int) -> list[float]:
    """Scale weights from 0 up, not all 0, to add up to 1; equal ones for None."""
    if weights is None:
        weights = [1.0] * count
    if len(weights) != count:
        raise InputError(
            f"expected one weight for each of {count} members, received {len(weights)}"
        )
    total = math.fsum(weights)
    are_usable = all(0 <= weight < math.inf for weight in weights)
    if not are_usable or not 0 < total < math.inf:
        raise InputError(f"expected finite weights from 0 up, not all 0, received {list(weights)}")
    return [weight / total for weight in weights]
