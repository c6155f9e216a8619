"""Systems side by side, each with one or several seeds, as plain JSON values."""

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Context
from itertools import combinations
from typing import Any, TypeAlias

from pipeline.evaluation.metrics.numbers import RSUM, STATISTICS, Statistic, at, nested
from pipeline.evaluation.metrics.standard import Metrics
from pipeline.evaluation.statistics.letters import letters
from pipeline.evaluation.statistics.significance import (
    LEVEL,
    Comparison,
    compare,
    deviations,
    enough_samples,
    holm,
    holm_factors,
)

# One of those that `together` gives, with what the caller adds: split, language.
Contrast: TypeAlias = Mapping[str, Any]
CANNOT_TELL = "cannot tell"


def together(
    pairs: Sequence[tuple[Sequence[Metrics], Sequence[Metrics]]], samples: int, seed: int
) -> list[dict[str, Any]]:
    """Compare pairs of systems that are printed together, with Holm's correction for all of them.

    RSUMs are one family, recalls another. Where the corrected p does not tell a difference, its row
    has what it needs: how many images, or seeds of both systems, would tell one of this size with a
    power of 0.8, if the other tests have the same order. samples: the least number of swaps of a
    test; more are drawn where Holm's correction needs them.
    """
    samples = enough_samples(samples, (len(STATISTICS) - 1) * len(pairs))
    tested = [compare(a, b, samples, seed=seed) for a, b in pairs]
    contrasts = [_contrast(a, b, each) for (a, b), each in zip(pairs, tested, strict=True)]
    for family in (STATISTICS[:-1], STATISTICS[-1:]):
        tests = [
            (at(contrast, name), each[name])
            for contrast, each in zip(contrasts, tested, strict=True)
            for name in family
        ]
        chances = [test.p for _, test in tests]
        for (row, test), corrected, factor in zip(
            tests, holm(chances), holm_factors(chances), strict=True
        ):
            needs = test.evidence.needs(LEVEL / factor) if corrected >= LEVEL else None
            row |= {
                "holm": corrected,
                "verdict": _verdict(row["difference"], needs),
                "needs": needs,
            }
    return contrasts


def _contrast(
    a: Sequence[Metrics], b: Sequence[Metrics], tested: Mapping[Statistic, Comparison]
) -> dict[str, Any]:
    spread = [deviations(runs) if len(runs) > 1 else None for runs in (a, b)]
    means = [
        {name: sum(run[name] for run in runs) / len(runs) for name in STATISTICS} for runs in (a, b)
    ]
    rows = {
        name: {
            "a": means[0][name],
            "b": means[1][name],
            "difference": each.difference.value,
            "interval": [each.difference.low, each.difference.high],
            "p": each.p,
            "resolution": each.resolution,
            "spread": {key: runs and runs[name] for key, runs in zip("ab", spread, strict=True)},
        }
        for name, each in tested.items()
    }
    return {
        "images": a[0].images,
        "captions": a[0].captions,
        "protocol": a[0].protocol,
        "ties": a[0].ties,
        "seeds": {"a": len(a), "b": len(b)},
        "over": ["images", "seeds"] if tested[RSUM].over_seeds else ["images"],
        **nested(rows),
    }


def _verdict(difference: float, needs: Mapping[str, int | None] | None) -> str:
    """In words: higher, lower, or "cannot tell; 3,500 images would"."""
    if needs is None:
        return "higher" if difference > 0 else "lower"
    return f"{CANNOT_TELL}; {would_tell(needs)}"


def would_tell(needs: Mapping[str, int | None]) -> str:
    """What would tell a difference, rounded up to two digits: "9 seeds would", "3,500 images
    would".
    """
    for unit in ("seeds", "images"):
        if number := needs.get(unit):
            return f"{int(Context(2, ROUND_CEILING).create_decimal(number)):,} {unit} would"
    return "no number would"


def in_letters(contrasts: Sequence[Contrast]) -> list[str]:
    """The letters of systems by RSUM, from the contrasts of all their pairs, in the order of
    `combinations`.

    Systems share a letter exactly if they are not told apart; `a` is that of the largest RSUM.
    """
    systems = next(
        count
        for count in range(2, len(contrasts) + 2)
        if count * (count - 1) // 2 == len(contrasts)
    )
    rows = dict(
        zip(
            combinations(range(systems), 2),
            (contrast[RSUM.metric] for contrast in contrasts),
            strict=True,
        )
    )
    means = [rows[0, 1]["a"], *(rows[0, system]["b"] for system in range(1, systems))]
    return letters(means, {pair for pair, row in rows.items() if row["holm"] < LEVEL})
