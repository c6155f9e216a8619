"""Two systems side by side, each of one or several seeds: plain JSON values, text, Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.retrieval.metrics import RECALLS, Metrics
from pipeline.retrieval.per_image import STATISTICS
from pipeline.retrieval.significance import compare, over_seeds

TITLES = {f"{way}_r{k}": f"{title}, R@{k}" for way, title in (("i2t", "image → caption"), ("t2i", "caption → image"))
          for k in RECALLS} | {"rsum": "RSUM"}
NOTE = ("B - A: with its 95 % interval, by a bootstrap over images; p: two-sided, by a paired randomisation test over "
        "images; ±: standard deviation over seeds, where there are several.")


def of(a: Sequence[Metrics], b: Sequence[Metrics], samples: int, seed: int) -> dict[str, Any]:
    """A statistic's name -> a, b (means over seeds, in percent), difference b - a, its interval [low, high], p, and
    spread: {a, b}, the standard deviation over seeds, None for a single one. Also images, captions and protocol.

    Raises InputError unless all were measured by one protocol on the same images and captions.
    """
    found = compare(a, b, samples, seed=seed)
    spread = [over_seeds(runs) if len(runs) > 1 else None for runs in (a, b)]
    means = [_means(runs) for runs in (a, b)]
    rows = {name: {
        "a": means[0][name], "b": means[1][name], "difference": found[name].difference.value,
        "interval": [found[name].difference.low, found[name].difference.high], "p": found[name].p,
        "spread": {key: each and each[name].deviation for key, each in zip("ab", spread, strict=True)},
    } for name in STATISTICS}
    return {"images": a[0].images, "captions": a[0].captions, "protocol": a[0].protocol, "ties": a[0].ties, **rows}


def _means(runs: Sequence[Metrics]) -> dict[str, float]:
    by_run = [[*run.i2t.recalls.values(), *run.t2i.recalls.values(), run.rsum] for run in runs]
    return {name: sum(values) / len(runs) for name, values in zip(STATISTICS, zip(*by_run, strict=True), strict=True)}


def to_text(a: str, b: str, contrasts: Sequence[Mapping[str, Any]]) -> str:
    """One small table for each contrast; a and b name the systems."""
    parts = [f"A  {a}", f"B  {b}", ""]
    for each in contrasts:
        cells = [["", "A", "B", "B - A", "p"], *_cells(each)]
        widths = [max(len(row[column]) for row in cells) for column in range(5)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
        parts += [_title(each), *(f"  {line}".rstrip() for line in lines), ""]
    return "\n".join([*parts, NOTE])


def to_markdown(a: str, b: str, contrasts: Sequence[Mapping[str, Any]]) -> str:
    """All contrasts in one table."""
    lines = ["| | A | B | B - A | p |", "|:--|--:|--:|--:|--:|"]
    for each in contrasts:
        lines += [f"| *{_title(each)}* | | | | |", *("| " + " | ".join(row) + " |" for row in _cells(each))]
    return "\n\n".join([f"A: `{a}`, B: `{b}`", "\n".join(lines), NOTE])


def _title(contrast: Mapping[str, Any]) -> str:
    return "{images} images x {captions} captions, protocol {protocol}".format(**contrast)


def _cells(contrast: Mapping[str, Any]) -> list[list[str]]:
    return [[TITLES[name], *(_mean(contrast[name], system) for system in "ab"),
             "{:+.1f} [{:+.1f}, {:+.1f}]".format(contrast[name]["difference"], *contrast[name]["interval"]),
             f"{contrast[name]['p']:.3g}"] for name in STATISTICS]


def _mean(row: Mapping[str, Any], system: str) -> str:
    deviation = row["spread"][system]
    return f"{row[system]:.1f}" + ("" if deviation is None else f" ± {deviation:.1f}")
