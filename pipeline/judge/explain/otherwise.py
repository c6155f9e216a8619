"""The pools of other readings: the same files as others read them, and what else these hold."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from pipeline.foundation.evaluation.retrieval import Direction, Ids, Lists, Positives, Relevance
from pipeline.foundation.evaluation.retrieval.lists import Listed
from pipeline.foundation.evaluation.retrieval.relevance import without_queries
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.judge.explain import doubles
from pipeline.judge.explain.given import Given, Read
from pipeline.judge.systems.scores.judged import NothingJudged
from pipeline.judge.systems.scores.system import System

# The most pairs of all other readings, whose scores are kept.
MOST_PAIRS = 1 << 27
NO_ANSWERS = "the judgements have no right answers to its queries"


def of_system(
    pool: Given, system: System, opened: Callable[[Callable[[], System]], Given]
) -> dict[str, Read]:
    """What reads the other pools of a system's files, by the names of their readings.

    pool: that of the system itself. opened: makes a pool, with what is right in it, of what opens a
        system.
    """
    pairs = len(system.otherwise) * _pairs(pool)
    pools: dict[str, Callable[[], Given]] = {}
    for name, read in system.otherwise.items():
        pools[name] = cache(partial(_checked, pairs, partial(opened, read)))
    readings: dict[str, Read] = {**doubles.readings(pool), **pools}
    siblings = [pools[name] for name in system.siblings]
    if siblings:
        readings["mean of subsets"] = partial(_mean, pool, siblings)
        readings["subsets together"] = partial(_together, pool, siblings)
    return readings


def _pairs(pool: Given) -> int:
    """How many pairs have a score."""
    if isinstance(pool.scores, Lists):
        return sum(len(listed.query) for listed in pool.scores.listed.values())
    return pool.cells


def _checked(pairs: int, read: Callable[[], Given]) -> Given:
    """The pool of a reading; refused where it holds too many pairs or nothing is right in it."""
    if pairs > MOST_PAIRS:
        raise InputError(f"together they have {pairs:,} pairs; give fewer queries")
    with refusing(NothingJudged, NO_ANSWERS):
        pool = read()
        relevances = [relevance() for relevance in pool.judged.values()]
    if any(map(without_queries, relevances)):
        raise InputError(NO_ANSWERS)
    return pool


def _mean(pool: Given, siblings: Sequence[Callable[[], Given]]) -> Given:
    """Pools whose numbers are averaged, as those of seeds are."""
    return replace(pool, others=tuple(read() for read in siblings))


def _together(pool: Given, siblings: Sequence[Callable[[], Given]]) -> Given | None:
    """The queries of all pools in one, each with the candidates of its own; None where as many of
    each pool have an answer, which gives the mean of the pools.
    """
    pools = [pool, *(read() for read in siblings)]
    names = [name for name in pool.judged if all(name in each.judged for each in pools)]
    judged = {}
    for name in names:
        of_pools = [each.judged[name]() for each in pools]
        queries = {int(np.count_nonzero(each.t2i.count)) for each in of_pools}
        if len(queries) == 1:
            return None
        judged[name] = cache(partial(_relevance, of_pools))
    return replace(
        pool,
        owner=_after_another([each.owner for each in pools], [each.images for each in pools]),
        scores=_lists(pools),
        captions=None,
        languages=None,
        judged=judged,
        of_tools=None,
        unlisted=sum(each.unlisted for each in pools),
        otherwise={},
    )


def _after_another(rows: Sequence[Ids], sizes: Sequence[int]) -> Ids:
    """Rows of several pools as rows of all of them, one pool after another; -1 stays."""
    starts = np.cumsum(sizes) - sizes
    moved = []
    for of_pool, start in zip(rows, starts.tolist(), strict=True):
        moved.append(np.where(of_pool < 0, -1, of_pool + start))
    return np.concatenate(moved)


def _lists(pools: Sequence[Given]) -> Lists:
    """The lists of captions of all pools."""
    way: Direction = "t2i"
    listed = [pool.scores.listed[way] for pool in pools if isinstance(pool.scores, Lists)]
    images = [pool.images for pool in pools]
    captions = [len(pool.owner) for pool in pools]
    joined = Listed(
        _after_another([each.query for each in listed], captions),
        _after_another([each.candidate for each in listed], images),
        np.concatenate([each.score for each in listed]),
    )
    return Lists((sum(images), sum(captions)), {way: joined}, pools[0].name)


def _relevance(of_pools: Sequence[Relevance]) -> Relevance:
    """What is right in all pools."""
    images = [each.shape[0] for each in of_pools]
    captions = [each.shape[1] for each in of_pools]
    t2i = Positives.of_pairs(
        _after_another([each.t2i.query for each in of_pools], captions),
        _after_another([each.t2i.candidate for each in of_pools], images),
        sum(captions),
        np.concatenate([each.t2i.grades for each in of_pools]),
    )
    owner = _after_another([each.owner for each in of_pools], images)
    return Relevance.of_captions(t2i, sum(images), owner)
