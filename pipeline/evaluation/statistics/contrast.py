"""Two systems side by side, each with one or several seeds: plain JSON values, text, Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipeline.evaluation.retrieval.metrics import RECALLS, Metrics
from pipeline.evaluation.retrieval.summary import aligned, wrapped
from pipeline.evaluation.statistics.per_image import STATISTICS
from pipeline.evaluation.statistics.seeds import over_seeds
from pipeline.evaluation.statistics.significance import compare, holm

TITLES = {f"{way}_r{k}": f"{title}, R@{k}" for way, title in (("i2t", "image → caption"), ("t2i", "caption → image"))
          for k in RECALLS} | {"rsum": "RSUM"}
SHORT = {f"{way}_r{k}": f"{way} R@{k}" for way in ("i2t", "t2i") for k in RECALLS} | {"rsum": "RSUM"}
"""As a terminal's 80 columns have room for."""

OVER_SEEDS = ("In brackets: 95 % intervals; p: two-sided. Both are for other images and other seeds at once (Welch's "
              "test over seeds, with the variance over images added); seeds of two systems are taken as independent.")
OVER_IMAGES = ("In brackets: 95 % intervals; p: two-sided. Both are by one paired randomisation test over "
               "images. Seeds are not in them: one run of a system does not show how far its seeds spread. "
               "Trained again, the same two recipes may differ by more, or the other way.")
HOLM = ("Holm: p corrected for all that is compared here, RSUM among RSUMs, recalls among recalls. "
        "±: standard deviation over seeds.")


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
            "over": ["images", "seeds"] if found["rsum"].over_seeds else ["images"], **rows}


def enough_samples(samples: int, contrasts: int) -> int:
    """Find how many swaps it takes for Holm's correction to leave a p below 0.05 in reach.

    The least p of a randomisation test is 1 / (1 + swaps), which the correction multiplies by the number of tests.
    """
    return max(samples, 40 * len(STATISTICS[:-1]) * contrasts)


def correct(contrasts: Sequence[dict[str, Any]]) -> None:
    """Add `holm`, the corrected p, to comparisons that are printed together.

    The RSUMs are one family of tests, the recalls another.
    """
    for family in (STATISTICS[:-1], STATISTICS[-1:]):
        rows = [contrast[name] for contrast in contrasts for name in family]
        for row, corrected in zip(rows, holm([row["p"] for row in rows]), strict=True):
            row["holm"] = corrected


def _means(runs: Sequence[Metrics]) -> dict[str, float]:
    by_run = [[*run.i2t.recalls.values(), *run.t2i.recalls.values(), run.rsum] for run in runs]
    return {name: sum(values) / len(runs) for name, values in zip(STATISTICS, zip(*by_run, strict=True), strict=True)}


def to_text(a: str, b: str, contrasts: Sequence[Mapping[str, Any]]) -> str:
    """Write one small text table for each comparison."""
    parts = [f"A  {a}", f"B  {b}", ""]
    for each in contrasts:
        parts += [title(each), *aligned([["", "A", "B", "B - A", "p", "Holm"], *_cells(each, SHORT)]), ""]
    return "\n".join([*parts, *map(wrapped, notes(contrasts))])


def to_markdown(a: str, b: str, contrasts: Sequence[Mapping[str, Any]]) -> str:
    """Write all comparisons as one Markdown table."""
    lines = ["| | A | B | B - A | p | Holm |", "|:--|--:|--:|--:|--:|--:|"]
    for each in contrasts:
        lines += [f"| *{title(each)}* | | | | | |", *("| " + " | ".join(row) + " |" for row in _cells(each))]
    return "\n\n".join([f"A: `{a}`, B: `{b}`", "\n".join(lines), *notes(contrasts)])


def title(contrast: Mapping[str, Any]) -> str:
    """Describe the pool and protocol of a comparison."""
    split = f"{contrast['split']} split, " if "split" in contrast else ""
    language = f" in {contrast['language']}" if "language" in contrast else ""
    return (f"{split}{contrast['images']} images x {contrast['captions']} captions{language}, protocol "
            f"{contrast['protocol']}")


def tested(row: Mapping[str, Any]) -> list[str]:
    """Write the cells of one statistic's difference."""
    return ["{:+.1f} [{:+.1f}, {:+.1f}]".format(row["difference"], *row["interval"]), f"{row['p']:.3g}",
            f"{row['holm']:.3g}"]


def notes(contrasts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Explain how to read comparisons that are printed together."""
    seeds_are_in = {"seeds" in each["over"] for each in contrasts}
    if len(seeds_are_in) == 1:
        return [OVER_SEEDS if True in seeds_are_in else OVER_IMAGES, HOLM]
    return [f"Over images and seeds: {OVER_SEEDS}", f"Over images: {OVER_IMAGES}", HOLM]


def mean(value: float, deviation: float | None) -> str:
    """Write a mean over seeds with its standard deviation."""
    return f"{value:.1f}" + ("" if deviation is None else f" ± {deviation:.1f}")


def _cells(contrast: Mapping[str, Any], titles: Mapping[str, str] = TITLES) -> list[list[str]]:
    return [[titles[name], *(mean(contrast[name][system], contrast[name]["spread"][system]) for system in "ab"),
             *tested(contrast[name])] for name in STATISTICS]
