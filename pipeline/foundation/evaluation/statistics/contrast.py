"""Systems side by side, each with one or several seeds, as plain JSON values."""

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Context
from itertools import combinations
from typing import Any, TypeAlias

from pipeline.foundation.evaluation.metrics.base import RSUM, STATISTICS, Statistic, at, nested
from pipeline.foundation.evaluation.metrics.standard import Metrics
from pipeline.foundation.evaluation.statistics import noise
from pipeline.foundation.evaluation.statistics.letters import letters
from pipeline.foundation.evaluation.statistics.significance import (
    LEVEL,
    Comparison,
    Corrected,
    compare,
    deviations,
    enough_samples,
    holm,
    holm_factors,
)

# One of those that `together` gives, with what the caller adds: split, language.
Contrast: TypeAlias = Mapping[str, Any]
# A row of a contrast, and its test.
_Test: TypeAlias = tuple[dict[str, Any], Comparison]
CANNOT_TELL = "cannot tell"
# What a row's p is corrected by: `step_down`, for the other recalls of its pair, or `holm`, for all
# that is compared; None where it is one test by itself.
MAX_T = "maxT"
HOLM = "Holm"


def together(
    pairs: Sequence[tuple[Sequence[Metrics], Sequence[Metrics]]],
    samples: int,
    seed: int,
    over_seeds: bool = True,
) -> list[dict[str, Any]]:
    """Compare pairs of systems that are printed together, corrected for all of them.

    RSUMs are one family, recalls another. The recalls of one pair that is tested over images are
    corrected by `step_down`; those of several pairs, and of one over seeds, by `holm`. Where a
    difference is not significant after correction, its row has what it needs: how many images, or
    seeds of both systems, would make one of this size significant with a power of 0.8, if the other
    tests have the same order. samples: the least number of swaps of a test; more are drawn where
    Holm's correction needs them. over_seeds: whether two systems with several seeds are tested over
    seeds and images.
    """
    recalls = max((len(_statistics(a)) - 1 for a, _ in pairs), default=0)
    samples = enough_samples(samples, recalls * len(pairs))
    contrasts = []
    of_recalls = []
    of_sums = []
    for a, b in pairs:
        tested = compare(a, b, samples, seed=seed, over_seeds=over_seeds)
        contrast = _contrast(a, b, tested)
        contrasts.append(contrast)
        tests = [(at(contrast, name), tested[name]) for name in compared(contrast)]
        of_recalls += tests[:-1]
        of_sums += tests[-1:]
    if len(pairs) == 1 and all(test.within_pair for _, test in of_recalls):
        _correct_within_pair(of_recalls)
    else:
        _correct_by_holm(of_recalls)
    _correct_by_holm(of_sums)
    return contrasts


def compared(contrast: Contrast) -> list[Statistic]:
    """The statistics of a contrast, RSUM last: those of one direction alone where lists rank one.

    RSUM is then the sum of its three recalls.
    """
    return [name for name in STATISTICS if not name.direction or contrast[name.direction]]


def corrected_by(contrast: Contrast) -> str:
    """What the recalls of a contrast are corrected by, `MAX_T` or `HOLM`."""
    recall = compared(contrast)[0]
    return str(at(contrast, recall)["adjusted_by"])


def _statistics(runs: Sequence[Metrics]) -> list[Statistic]:
    """Those of the directions that have queries."""
    known = runs[0].directions
    return [name for name in STATISTICS if not name.direction or name.direction in known]


def _correct_within_pair(recalls: Sequence[_Test]) -> None:
    """Write the p of one pair's recalls, corrected for each other, and verdicts into their rows."""
    for row, test in recalls:
        assert test.within_pair is not None
        _correct(row, test, test.within_pair, MAX_T)


def _correct_by_holm(family: Sequence[_Test]) -> None:
    """Write the p of a family's tests, corrected for each other, and verdicts into their rows."""
    chances = [test.p for _, test in family]
    by = HOLM if len(family) > 1 else None
    corrections = zip(holm(chances), holm_factors(chances), strict=True)
    for (row, test), (p, factor) in zip(family, corrections, strict=True):
        _correct(row, test, Corrected(p, LEVEL / factor), by)


def _correct(row: dict[str, Any], test: Comparison, corrected: Corrected, by: str | None) -> None:
    needs = None
    if corrected.p >= LEVEL:
        needs = test.evidence.needs(corrected.level)
    row["adjusted"] = corrected.p
    row["adjusted_by"] = by
    row["verdict"] = _verdict(row["difference"], needs)
    row["needs"] = needs


def _contrast(
    a: Sequence[Metrics], b: Sequence[Metrics], tested: Mapping[Statistic, Comparison]
) -> dict[str, Any]:
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
        recalls = _statistics(runs)[:-1]
        return sum(_mean(runs, recall) for recall in recalls)
    return sum(run[name] for run in runs) / len(runs)


def _verdict(difference: float, needs: Mapping[str, int | None] | None) -> str:
    """In words: higher, lower, or "cannot tell; 3,500 images would suffice"."""
    if needs is not None:
        return f"{CANNOT_TELL}; {sufficient(needs)} would suffice"
    if difference > 0:
        return "higher"
    return "lower"


def sufficient(needs: Mapping[str, int | None]) -> str:
    """What would make a difference significant, rounded up to two digits: "9 seeds"."""
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
    systems = 2
    while systems * (systems - 1) // 2 < len(contrasts):
        systems += 1
    pairs = combinations(range(systems), 2)
    rows = {}
    for pair, contrast in zip(pairs, contrasts, strict=True):
        rows[pair] = contrast[RSUM.metric]
    means = [rows[0, 1]["a"]]
    for system in range(1, systems):
        means.append(rows[0, system]["b"])
    different = {pair for pair, row in rows.items() if row["adjusted"] < LEVEL}
    return letters(means, different)
