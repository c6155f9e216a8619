"""Systems side by side, each with one or several seeds, as plain JSON values."""

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Context
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from pipeline.foundation.evaluation.metrics.base import RSUM, STATISTICS, Statistic, at, nested
from pipeline.foundation.evaluation.metrics.standard import Metrics
from pipeline.foundation.evaluation.statistics import noise
from pipeline.foundation.evaluation.statistics.all_pairs import LEVEL, Corrected
from pipeline.foundation.evaluation.statistics.equivalence import (
    Equality,
    check_margin,
    equality,
)
from pipeline.foundation.evaluation.statistics.families import FDR, ComparedPairs, correct
from pipeline.foundation.evaluation.statistics.letters import letters
from pipeline.foundation.evaluation.statistics.rank_intervals import rank_intervals
from pipeline.foundation.evaluation.statistics.significance import (
    Comparison,
    Hits,
    check_same_queries,
    deviations,
    enough_samples,
    hits_of,
    yekutieli_factor,
)

# A system's runs, one or several that differ in their seed.
Runs: TypeAlias = Sequence[Metrics]
# One of those that `together` gives, with what the caller adds: split, language.
Contrast: TypeAlias = Mapping[str, Any]
CANNOT_TELL = "cannot tell"
# Of q, which say nothing of systems that are not found to differ.
FOUND = "difference found"
NOT_FOUND = "not found"
# More swaps for q take minutes; fewer may be needed, since several small p make each q smaller.
MOST_SWAPS = 20_000


def together(
    pools: Sequence[Sequence[tuple[Runs, Runs]]],
    samples: int,
    seed: int,
    over_seeds: bool = True,
    fdr: bool = False,
    margin: float | None = None,
) -> list[list[dict[str, Any]]]:
    """Compare pairs of systems that are printed together, corrected for all of them.

    RSUMs are one family, recalls and further metrics another, see `correct`. Where a difference is
    not significant after correction, its row has what it needs: how many images, or seeds of both
    systems, would make one of this size significant with a power of 0.8, if the other tests have
    the same order.

    Args:
        pools: Pairs of systems on the same images; one pool for each protocol or language.
        samples: The least number of swaps of a test; more are drawn where Holm's correction needs
            them.
        seed: Of the swaps.
        over_seeds: Whether two systems with several seeds are tested over seeds and images.
        fdr: Whether p are corrected to q.
        margin: Each row also says whether the systems are equal within it, see `equality`; of a
            recall, in percent points.

    Returns:
        The contrast of each pair of each pool.

    Raises:
        InputError: For systems that were not measured alike, and for a margin that is not above 0
            and below 100.
    """
    if margin is not None:
        check_margin(margin)
    pools = [pairs for pairs in pools if pairs]
    recalls = [_statistics(pairs[0][0])[:-1] for pairs in pools]
    tests = sum(len(names) * len(pairs) for names, pairs in zip(recalls, pools, strict=True))
    if fdr:
        wanted = enough_samples(samples, math.ceil(yekutieli_factor(tests)))
        samples = max(samples, min(wanted, MOST_SWAPS))
    elif over_seeds and any(len(a) > 1 and len(b) > 1 for pairs in pools for a, b in pairs):
        samples = enough_samples(samples, tests)
    tested = [_tested(pairs, samples, seed, over_seeds) for pairs in pools]
    contrasts = []
    for pairs, of_pool in zip(pools, tested, strict=True):
        contrasts.append(
            [_contrast(*pair, tests) for pair, tests in zip(pairs, of_pool.tests, strict=True)]
        )
    for statistics in (recalls, [[RSUM]] * len(pools)):
        family = correct(tested, statistics, samples, seed, fdr)
        corrected = iter(family.corrected)
        for of_pool, names, of_contrasts in zip(tested, statistics, contrasts, strict=True):
            for tests_of_pair, contrast in zip(of_pool.tests, of_contrasts, strict=True):
                for name in names:
                    row = at(contrast, name)
                    _correct(row, tests_of_pair[name], next(corrected), family.by)
    if margin is not None:
        for of_pool, of_contrasts in zip(tested, contrasts, strict=True):
            for pair, contrast in zip(of_pool.pairs, of_contrasts, strict=True):
                found = equality(*pair, margin, seed, over_seeds)
                for name in compared(contrast):
                    row = at(contrast, name)
                    row["margin"] = _within(row, found[name])
    return contrasts


def _tested(
    pairs: Sequence[tuple[Runs, Runs]], samples: int, seed: int, over_seeds: bool
) -> ComparedPairs:
    """The tests of pairs of one pool, the hits of each system counted once."""
    hits: dict[int, Hits] = {}
    reference = pairs[0][0][:1]
    for system in [system for pair in pairs for system in pair]:
        if id(system) not in hits:
            check_same_queries([*reference, *system])
            hits[id(system)] = hits_of(system)
    of_pairs = [(hits[id(a)], hits[id(b)]) for a, b in pairs]
    return ComparedPairs.of(of_pairs, samples, seed, over_seeds)


def compared(contrast: Contrast) -> list[Statistic]:
    """The statistics of a contrast, RSUM last: those of one direction alone where lists rank one.

    RSUM is then the sum of its three recalls.
    """
    names = []
    for way in ("i2t", "t2i"):
        for metric in contrast[way] or ():
            names.append(Statistic(way, metric))
    return [*names, RSUM]


def corrected_by(contrast: Contrast) -> str:
    """What the recalls of a contrast are corrected by, `MAX_T`, `HOLM` or `FDR`."""
    recall = compared(contrast)[0]
    return str(at(contrast, recall)["adjusted_by"])


def _statistics(runs: Runs) -> list[Statistic]:
    """Those of the directions that have queries, RSUM last."""
    return [*_recalls(runs), *runs[0].further, RSUM]


def _recalls(runs: Runs) -> list[Statistic]:
    return [name for name in STATISTICS if name.direction in runs[0].directions]


def _correct(row: dict[str, Any], test: Comparison, corrected: Corrected, by: str | None) -> None:
    needs = None
    if corrected.p >= LEVEL:
        needs = test.evidence.needs(corrected.level)
    row["adjusted"] = corrected.p
    row["adjusted_by"] = by
    row["verdict"] = _verdict(row["difference"], needs, by)
    row["needs"] = needs


def _contrast(a: Runs, b: Runs, tested: Mapping[Statistic, Comparison]) -> dict[str, Any]:
    spread_of_a = _spread(a)
    spread_of_b = _spread(b)
    limits: Mapping[Statistic, noise.Limit] = {}
    if not tested[RSUM].over_seeds:  # else interval and p cover what differs between runs
        limits = noise.limits(a, b)
    rows = {}
    for name in _statistics(a):
        test = tested[name]
        difference = test.difference
        spread = {"a": spread_of_a.get(name), "b": spread_of_b.get(name)}
        rows[name] = {
            "a": _mean(a, name),
            "b": _mean(b, name),
            "difference": difference.value,
            "interval": [difference.low, difference.high],
            "p": test.p,
            "resolution": test.resolution,
            "spread": spread,
            "noise": _noise(difference.value, limits.get(name)),
        }
    over = ["images"]
    if tested[RSUM].over_seeds:
        over.append("seeds")
    return {
        "images": a[0].images,
        "captions": a[0].captions,
        "protocol": a[0].protocol,
        "ties": a[0].ties,
        "seeds": {"a": len(a), "b": len(b)},
        "over": over,
        "i2t": None,
        "t2i": None,
        **nested(rows),
    }


def _noise(difference: float, limit: noise.Limit | None) -> dict[str, Any] | None:
    """What the difference stays below by noise alone, and whether it does; None where neither
    system was run several times.
    """
    if limit is None:
        return None
    is_less = abs(difference) < limit.limit
    return {"limit": limit.limit, "freedom": limit.freedom, "less": is_less}


def _spread(runs: Sequence[Metrics]) -> Mapping[Statistic, float]:
    """The deviations of runs, which one run alone does not have."""
    if len(runs) == 1:
        return {}
    return {name: value for name, value in deviations(runs).items() if not math.isnan(value)}


def _mean(runs: Sequence[Metrics], name: Statistic) -> float:
    if name == RSUM:
        return sum(_mean(runs, recall) for recall in _recalls(runs))
    return sum(run[name] for run in runs) / len(runs)


def _verdict(difference: float, needs: Mapping[str, int | None] | None, by: str | None) -> str:
    """In words: higher, lower, or "cannot tell; 3,500 images would suffice"; by q, "difference
    found" or "not found; 3,500 images would suffice".
    """
    if needs is not None:
        unknown = CANNOT_TELL
        if by == FDR:
            unknown = NOT_FOUND
        return f"{unknown}; {sufficient(needs)} would suffice"
    if by == FDR:
        return FOUND
    if difference > 0:
        return "higher"
    return "lower"


def _within(row: Mapping[str, Any], found: Equality) -> dict[str, Any]:
    """Whether a row's systems are equal within a margin. A difference that is significant stays
    one: "higher by less than 0.5", by q "difference found, less than 0.5". `needs` is of those of
    which neither is shown.
    """
    is_significant = row["adjusted"] < LEVEL
    needs = None
    verdict = row["verdict"]
    if is_significant and found.is_shown:
        by_less = " by less than"
        if row["adjusted_by"] == FDR:
            by_less = ", less than"
        verdict = f"{verdict}{by_less} {found.margin:g}"
    elif found.is_shown:
        verdict = f"equal within {found.margin:g}"
    elif not is_significant:
        needs = found.needs()
        verdict = CANNOT_TELL
        if any(needs.values()):
            verdict = f"{CANNOT_TELL}; {sufficient(needs)} would show equality"
    return {
        "margin": found.margin,
        "interval": [found.interval.low, found.interval.high],
        "equal": found.is_shown,
        "verdict": verdict,
        "needs": needs,
    }


def sufficient(needs: Mapping[str, int | None]) -> str:
    """What would be enough, rounded up to two digits: "9 seeds"."""
    for unit in ("seeds", "images"):
        number = needs.get(unit)
        if number:
            rounded = int(Context(2, ROUND_CEILING).create_decimal(number))
            return f"{rounded:,} {unit}"
    return "no number"


def in_letters(contrasts: Sequence[Contrast]) -> list[str]:
    """The letters of systems by RSUM, from the contrasts of all their pairs, in the order of
    `combinations`.

    Systems share a letter exactly if they do not differ significantly; `a` is that of the
    largest RSUM.
    """
    rows = _sums(contrasts)
    means = [rows[0, 1]["a"]]
    for (first, _), row in rows.items():
        if first == 0:
            means.append(row["b"])
    different = {pair for pair, row in rows.items() if row["adjusted"] < LEVEL}
    return letters(means, different)


def in_ranks(contrasts: Sequence[Contrast]) -> list[tuple[int, int]]:
    """The best and the worst rank of each system by RSUM, likewise; see `rank_intervals`."""
    rows = _sums(contrasts)
    count = 1 + max(second for _, second in rows)
    difference = np.zeros((count, count))
    adjusted = np.ones((count, count))
    for (first, second), row in rows.items():
        difference[first, second] = row["difference"]
        difference[second, first] = -row["difference"]
        adjusted[[first, second], [second, first]] = row["adjusted"]
    found = rank_intervals(difference, adjusted)
    return list(zip(found.best.tolist(), found.worst.tolist(), strict=True))


def _sums(contrasts: Sequence[Contrast]) -> dict[tuple[int, int], Mapping[str, Any]]:
    """The rows of RSUM, by the places of the two systems."""
    systems = 2
    while systems * (systems - 1) // 2 < len(contrasts):
        systems += 1
    rows = {}
    for pair, contrast in zip(combinations(range(systems), 2), contrasts, strict=True):
        rows[pair] = contrast[RSUM.metric]
    return rows
