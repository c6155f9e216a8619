"""Three or more systems: each pair compared by RSUM, as text or as a Markdown table."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from pipeline.evaluation.retrieval.summary import aligned, wrapped
from pipeline.evaluation.statistics import contrast

COLUMNS = ("", "RSUM", "difference", "p", "Holm", "over")
RECALLS = "Every pair's recalls: --json."


def of(systems: int) -> list[tuple[int, int]]:
    """List all pairs of systems."""
    return list(combinations(range(systems), 2))


def to_text(names: Sequence[str], contrasts: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """Write one text table of all pairs for each protocol."""
    parts = [*(f"{number}  {name}" for number, name in enumerate(names, 1)), ""]
    for each in contrasts:
        parts += [contrast.title(each[0]), *aligned([COLUMNS, *_rows(len(names), each)]), ""]
    return "\n".join([*parts, *map(wrapped, _notes(contrasts))])


def to_markdown(names: Sequence[str], contrasts: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """Write all pairs and protocols as one Markdown table."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|:--|--:|--:|--:|--:|:--|"]
    for each in contrasts:
        lines += [f"| *{contrast.title(each[0])}* |" + " |" * 5,
                  *("| " + " | ".join(row) + " |" for row in _rows(len(names), each))]
    told = ", ".join(f"{number}: `{name}`" for number, name in enumerate(names, 1))
    return "\n\n".join([told, "\n".join(lines), *_notes(contrasts)])


def _rows(systems: int, contrasts: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """A row for each system, then one for each pair."""
    rows = dict(zip(of(systems), contrasts, strict=True))
    alone = [(rows[0, 1]["rsum"], "a"), *((rows[0, number]["rsum"], "b") for number in range(1, systems))]
    return [*([str(number), contrast.mean(row[side], row["spread"][side]), "", "", "", ""]
              for number, (row, side) in enumerate(alone, 1)),
            *([f"{b + 1} - {a + 1}", "", *contrast.tested(row["rsum"]), ", ".join(row["over"])]
              for (a, b), row in rows.items())]


def _notes(contrasts: Sequence[Sequence[Mapping[str, Any]]]) -> list[str]:
    return [*contrast.notes(each for group in contrasts for each in group), RECALLS]
