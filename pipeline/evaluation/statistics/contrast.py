"""Systems side by side, each with one or several seeds: plain JSON values, text, Markdown.

Two systems are compared by each recall and RSUM; of three or more, each pair by RSUM.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, TypeAlias

from pipeline.evaluation.metrics.numbers import RSUM, STATISTICS, TASKS, Statistic, at, nested
from pipeline.evaluation.metrics.standard import Metrics
from pipeline.evaluation.retrieval.summary import aligned
from pipeline.evaluation.statistics.significance import compare, holm, over_seeds
from pipeline.parts.wrapping import wrapped

# What `of` gives, with `holm` and what the caller adds: split, language.
Contrast: TypeAlias = Mapping[str, Any]

OVER_SEEDS = ("In brackets: 95 % intervals; p: two-sided. Both are for other images and other seeds at once (Welch's "
              "test over seeds, with the variance over images added); seeds of two systems are taken as independent.")
OVER_IMAGES = ("In brackets: 95 % intervals; p: two-sided. Both are by one paired randomisation test over "
               "images. Seeds are not in them: one run of a system does not show how far its seeds spread. "
               "Trained again, the same two recipes may differ by more, or the other way.")
HOLM = ("Holm: p corrected for all that is compared here, RSUM among RSUMs, recalls among recalls. "
        "±: standard deviation over seeds.")
RECALLS_OF_PAIRS = "Every pair's recalls: --json."


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
    """Add `holm`, the corrected p, to comparisons that are printed together.

    The RSUMs are one family of tests, the recalls another.
    """
    for family in (STATISTICS[:-1], STATISTICS[-1:]):
        rows = [at(contrast, name) for contrast in contrasts for name in family]
        for row, corrected in zip(rows, holm([row["p"] for row in rows]), strict=True):
            row["holm"] = corrected


def _means(runs: Sequence[Metrics]) -> dict[Statistic, float]:
    return {name: sum(run[name] for run in runs) / len(runs) for name in STATISTICS}


def to_text(names: Sequence[str], contrasts: Sequence[Sequence[Contrast]]) -> str:
    """Write a small text table for each protocol, of the contrasts of all pairs."""
    parts = [*(wrapped(f"{key}  {name}") for key, name in _keys(names)), ""]
    for each in contrasts:
        parts += [title(each[0]), *aligned([_columns(names), *_rows(len(names), each, str)]), ""]
    return "\n".join([*parts, *map(wrapped, _notes(contrasts))])


def to_markdown(names: Sequence[str], contrasts: Sequence[Sequence[Contrast]]) -> str:
    """Write all protocols as one Markdown table."""
    last = "--:|" if len(names) == 2 else ":--|"
    lines = ["| " + " | ".join(_columns(names)) + " |", f"|:--|--:|--:|--:|--:|{last}"]
    for each in contrasts:
        lines += [f"| *{title(each[0])}* | | | | | |",
                  *("| " + " | ".join(row) + " |" for row in _rows(len(names), each, _title))]
    return "\n\n".join([", ".join(f"{key}: `{name}`" for key, name in _keys(names)), "\n".join(lines),
                        *_notes(contrasts)])


def _keys(names: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip("AB" if len(names) == 2 else map(str, range(1, len(names) + 1)), names, strict=True))


def _columns(names: Sequence[str]) -> tuple[str, ...]:
    return ("", "A", "B", "B - A", "p", "Holm") if len(names) == 2 else ("", "RSUM", "difference", "p", "Holm", "over")


def title(contrast: Contrast) -> str:
    """Describe the pool and protocol of a comparison."""
    split = f"{contrast['split']} split, " if "split" in contrast else ""
    language = f" in {contrast['language']}" if "language" in contrast else ""
    return (f"{split}{contrast['images']} images x {contrast['captions']} captions{language}, protocol "
            f"{contrast['protocol']}")


def _title(name: Statistic) -> str:
    return f"{TASKS[name.direction]}, {name.metric}" if name.direction else name.metric


def _rows(systems: int, contrasts: Sequence[Contrast], titled: Callable[[Statistic], str]) -> list[list[str]]:
    """Of two systems a row for each statistic; of more one for each system, then one for each pair."""
    if systems == 2:
        (only,) = contrasts
        rows = {name: at(only, name) for name in STATISTICS}
        return [[titled(name), *(mean_cell(row, side) for side in "ab"), *difference_cells(row)]
                for name, row in rows.items()]
    of_pair = dict(zip(combinations(range(systems), 2), contrasts, strict=True))
    sides = [(of_pair[0, 1], "a"), *((of_pair[0, number], "b") for number in range(1, systems))]
    means = [mean_cell(each["RSUM"], side) for each, side in sides]
    return [*([str(number), mean, "", "", "", ""] for number, mean in enumerate(means, 1)),
            *([f"{b + 1} - {a + 1}", "", *difference_cells(each["RSUM"]), ", ".join(each["over"])]
              for (a, b), each in of_pair.items())]


def mean_cell(row: Contrast, side: str) -> str:
    """Write a mean over seeds with its standard deviation."""
    deviation = row["spread"][side]
    return f"{row[side]:.1f}" + ("" if deviation is None else f" ± {deviation:.1f}")


def difference_cells(row: Contrast, digits: int = 3) -> list[str]:
    """Write one statistic's difference with its interval, and p and the corrected p with so many digits."""
    return ["{:+.1f} [{:+.1f}, {:+.1f}]".format(row["difference"], *row["interval"]),
            *(f"{row[key]:.{digits}g}" for key in ("p", "holm"))]


def _notes(contrasts: Sequence[Sequence[Contrast]]) -> list[str]:
    """Explain how to read comparisons that are printed together."""
    seeds_are_in = {"seeds" in each["over"] for group in contrasts for each in group}
    over = [OVER_SEEDS if True in seeds_are_in else OVER_IMAGES] if len(seeds_are_in) == 1 else [
        f"Over images and seeds: {OVER_SEEDS}", f"Over images: {OVER_IMAGES}"]
    return [*over, HOLM, *([RECALLS_OF_PAIRS] if len(contrasts[0]) > 1 else [])]
