"""Systems side by side, each with one or several seeds, as plain JSON values."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pipeline.evaluation.metrics.numbers import RSUM, STATISTICS, Statistic, at, nested
from pipeline.evaluation.metrics.standard import Metrics
from pipeline.evaluation.statistics.significance import compare, holm, over_seeds

# What `of` gives, with `holm` and what the caller adds: split, language.
Contrast: TypeAlias = Mapping[str, Any]


def of(a: Sequence[Metrics], b: Sequence[Metrics], samples: int, seed: int) -> dict[str, Any]:
    """Compare two systems."""
    found = compare(a, b, samples, seed=seed)
    spread = [over_seeds(runs) if len(runs) > 1 else None for runs in (a, b)]
    means = [_means(runs) for runs in (a, b)]
    rows = {name: {
        "a": means[0][name], "b": means[1][name], "difference": found[name].difference.value,
        "interval": [found[name].difference.low, found[name].difference.high], "p": found[name].p,
        "spread": {key: each and each[name].deviation for key, each in zip("ab", spread, strict=True)},
    } for name in STATISTICS}
    return {"images": a[0].images, "captions": a[0].captions, "protocol": a[0].protocol, "ties": a[0].ties,
            "seeds": {"a": len(a), "b": len(b)},
            "over": ["images", "seeds"] if found[RSUM].over_seeds else ["images"], **nested(rows)}


def correct(contrasts: Sequence[dict[str, Any]]) -> None:
    """Add `holm`, the corrected p, to comparisons that are printed together: RSUMs are one family, recalls another."""
    for family in (STATISTICS[:-1], STATISTICS[-1:]):
        rows = [at(contrast, name) for contrast in contrasts for name in family]
        for row, corrected in zip(rows, holm([row["p"] for row in rows]), strict=True):
            row["holm"] = corrected


def _means(runs: Sequence[Metrics]) -> dict[Statistic, float]:
    return {name: sum(run[name] for run in runs) / len(runs) for name in STATISTICS}
