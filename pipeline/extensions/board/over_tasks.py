"""Systems over several tasks: a place by their ranks, and what holds when one unit is left out.

A unit is a task, or several that ask one question, such as translations of the same captions. Only
systems that are measured on every task get a place, and their ranks are among them alone. Nothing
is tested over tasks: tasks are no sample of anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.foundation.evaluation.retrieval import Floats

# Scores and values that are closer than this are equal.
DIGITS = 9


@dataclass(frozen=True)
class Scores:
    """What each of K placed systems has over U units, each float64 [K]."""

    mean_rank: Floats  # 1 for the best of every unit
    borda: Floats  # the sum over units of how many others are below, a tie counts half
    # how many others it beats on more units than it loses to them on; a draw counts half
    wins: Floats

    @classmethod
    def of(cls, ranks: Floats) -> Scores:
        """Compute them from each unit's ranks [U, K]."""
        _, systems = ranks.shape
        borda = (systems - ranks).sum(0)
        # [K, K], on how many units more the first is above the second than below.
        lead = np.sign((ranks[:, None] - ranks[:, :, None]).round(DIGITS)).sum(0)
        wins = (np.sign(lead) + 1).sum(1) / 2 - 0.5  # less the half for itself
        return cls(ranks.mean(0), borda, wins)


# Name of a rule -> what it is in words, and the number by which systems are placed, the smallest
# first.
RULES: dict[str, tuple[str, Callable[[Scores], Floats]]] = {
    "mean-rank": ("mean rank", lambda scores: scores.mean_rank),
    "borda": ("Borda", lambda scores: -scores.borda),
    "wins": ("wins", lambda scores: -scores.wins),
}


@dataclass(frozen=True)
class LeftOut:
    """The placed systems in another order, that without a unit."""

    unit: str
    systems: list[int]
    places: list[int]  # of each of them


@dataclass(frozen=True)
class Placed:
    """The systems that are measured on every task, [K] each, in the order of their places."""

    units: list[str]
    systems: list[int]  # which they are
    scores: Scores
    places: list[int]
    ends: list[tuple[int, int]]  # the smallest and the largest place when one unit is left out
    # every two, above and below, whose order holds whichever unit is left out
    stable: list[tuple[int, int]]
    others: list[LeftOut]  # where the order is another when a unit is left out


def ranks_of(values: Sequence[float], less_is_better: bool = False) -> Floats:
    """Rank values; equal ones have the mean of their places: float64 [K].

    >>> ranks_of([70.0, 75.0, 70.0])
    array([2.5, 1. , 2.5])
    """
    by_size = np.array(values, np.float64).round(DIGITS)
    if less_is_better:
        by_size = -by_size
    above = (by_size > by_size[:, None]).sum(1)
    equal = (by_size == by_size[:, None]).sum(1)
    ranks: Floats = above + (equal + 1) / 2
    return ranks


def place(
    ranks_of_tasks: Mapping[str, Floats],
    unit_of: Mapping[str, str],
    systems: Sequence[int],
    rule: str,
) -> Placed:
    """Place systems by one of `RULES`.

    Args:
        ranks_of_tasks: Task -> the rank of each of the K systems on it, [K].
        unit_of: Task -> its unit; a unit's rank is the mean over its tasks.
        systems: Which systems they are, [K], for the answer.
        rule: A key of `RULES`.

    Returns:
        The places, and what holds when one unit is left out.
    """
    of_units: dict[str, list[Floats]] = {}
    for task, ranks in ranks_of_tasks.items():
        of_units.setdefault(unit_of[task], []).append(ranks)
    units = list(of_units)
    table = np.array([np.mean(of_unit, axis=0) for of_unit in of_units.values()])
    table = table.reshape(len(units), len(systems))
    _, key = RULES[rule]

    def sorted_by(ranks: Floats) -> Floats:
        return key(Scores.of(ranks)).round(DIGITS)

    of_all = sorted_by(table)
    order = np.argsort(of_all, kind="stable")
    ordered = [systems[row] for row in order]
    table = table[:, order]
    without: list[Floats] = []
    if len(units) > 1:
        without = [sorted_by(np.delete(table, unit, axis=0)) for unit in range(len(units))]
    every = [of_all[order], *without]
    places = _places(of_all[order])
    left_out = np.array([_places(numbers) for numbers in without or every])
    ends = list(zip(left_out.min(0).tolist(), left_out.max(0).tolist(), strict=True))
    numbers = np.array(every)
    holds = (numbers[:, :, None] < numbers[:, None]).all(0)
    stable = []
    for above, below in np.argwhere(holds).tolist():
        stable.append((ordered[above], ordered[below]))
    others = []
    for unit, then_by in zip(units, without, strict=False):
        then = np.argsort(then_by, kind="stable")
        if (np.diff(then) < 0).any():
            others.append(LeftOut(unit, [ordered[row] for row in then], _places(then_by[then])))
    return Placed(units, ordered, Scores.of(table), places, ends, stable, others)


def _places(numbers: Floats) -> list[int]:
    """The place of each number, the smallest first; equal ones share the best of their places."""
    places: list[int] = (1 + (numbers < numbers[:, None]).sum(1)).tolist()
    return places
