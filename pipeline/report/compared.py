"""What `pipeline compare` prints: systems side by side as text or Markdown.

Two systems are compared by each recall and RSUM; of three or more, each pair by RSUM.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

from pipeline.evaluation.metrics.numbers import STATISTICS, TASKS, Statistic, at
from pipeline.evaluation.statistics.contrast import Contrast
from pipeline.parts.wrapping import wrapped
from pipeline.report import markdown, text
from pipeline.report.table import Cell, Panel, grid, number, to_digits

OVER_SEEDS = ("In brackets: 95 % intervals; p: two-sided. Both are for other images and other seeds at once (Welch's "
              "test over seeds, with the variance over images added); seeds of two systems are taken as independent.")
OVER_IMAGES = ("In brackets: 95 % intervals; p: two-sided. Both are by one paired randomisation test over "
               "images. Seeds are not in them: one run of a system does not show how far its seeds spread. "
               "Trained again, the same two recipes may differ by more, or the other way.")
HOLM = ("Holm: p corrected for all that is compared here, RSUM among RSUMs, recalls among recalls. "
        "±: standard deviation over seeds.")
RECALLS_OF_PAIRS = "Every pair's recalls: --json."


def to_text(names: Sequence[str], contrasts: Sequence[Sequence[Contrast]]) -> str:
    """Write a small text table for each protocol, of the contrasts of all pairs."""
    keys = [wrapped(f"{key}  {name}") for key, name in zip(_keys(names), names, strict=True)]
    return "\n".join([*keys, "", *text.to_text(_table(names, contrasts, str)), *map(wrapped, _notes(contrasts))])


def to_markdown(names: Sequence[str], contrasts: Sequence[Sequence[Contrast]]) -> str:
    """Write all protocols as one Markdown table."""
    keys = ", ".join(f"{key}: `{name}`" for key, name in zip(_keys(names), names, strict=True))
    return "\n\n".join([keys, markdown.rows(_table(names, contrasts, _title)), *_notes(contrasts)])


def _table(names: Sequence[str], contrasts: Sequence[Sequence[Contrast]], titled: Callable[[Statistic], str]) -> Panel:
    """A group for each protocol: of two systems a row for each statistic; of more one a system, then one a pair."""
    if len(names) == 2:
        return grid(("", "A", "B", "B − A", "p", "Holm"), {title(only): [
            (titled(name), *(mean(row, side) for side in "ab"), *difference(row))
            for name in STATISTICS for row in [at(only, name)]] for only, in contrasts})
    groups = {}
    for each in contrasts:
        pairs = dict(zip(combinations(range(len(names)), 2), each, strict=True))
        sides = [(pairs[0, 1], "a"), *((pairs[0, number], "b") for number in range(1, len(names)))]
        rows: list[Sequence[str | Cell]] = [(str(number), mean(contrast["RSUM"], side), "", "", "", "")
                                            for number, (contrast, side) in enumerate(sides, 1)]
        rows += [(f"{b + 1} − {a + 1}", "", *difference(pair["RSUM"]), ", ".join(pair["over"]))
                 for (a, b), pair in pairs.items()]
        groups[title(each[0])] = rows
    return grid(("", "RSUM", "difference", "p", "Holm", "over"), groups)


def _keys(names: Sequence[str]) -> Sequence[str]:
    return "AB" if len(names) == 2 else [str(number) for number in range(1, len(names) + 1)]


def _title(name: Statistic) -> str:
    return f"{TASKS[name.direction]}, {name.metric}" if name.direction else name.metric


def title(contrast: Contrast) -> str:
    """Describe the pool and protocol of a comparison."""
    split = f"{contrast['split']} split, " if "split" in contrast else ""
    language = f" in {contrast['language']}" if "language" in contrast else ""
    return (f"{split}{contrast['images']} images x {contrast['captions']} captions{language}, protocol "
            f"{contrast['protocol']}")


def mean(row: Mapping[str, Any], side: str) -> Cell:
    """A mean over seeds with its standard deviation."""
    return number(row[side], spread=row["spread"][side])


def difference(row: Mapping[str, Any], digits: int = 3) -> list[Cell]:
    """One statistic's difference with its interval, and p and the corrected p with so many digits."""
    return [number(row["difference"], row["interval"], is_difference=True),
            *(Cell(to_digits(row[key], digits)) for key in ("p", "holm"))]


def _notes(contrasts: Sequence[Sequence[Contrast]]) -> list[str]:
    """Explain how to read comparisons that are printed together."""
    seeds_are_in = {"seeds" in each["over"] for group in contrasts for each in group}
    over = [OVER_SEEDS if True in seeds_are_in else OVER_IMAGES] if len(seeds_are_in) == 1 else [
        f"Over images and seeds: {OVER_SEEDS}", f"Over images: {OVER_IMAGES}"]
    return [*over, HOLM, *([RECALLS_OF_PAIRS] if len(contrasts[0]) > 1 else [])]
