"""Which numbers of a table are set in bold, and in which colour.

A rule takes the rows that compete and the columns, and answers {(row index, column): colour}. Rows that tie
in what is shown are all marked. Published and measured rows are never handed to a rule together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from pipeline.report.entries import Entry
from pipeline.report.layout import Key
from pipeline.report.table import Colour

Emphasis = dict[tuple[int, Key], Colour]
Rule = Callable[[Sequence[Entry], Sequence[Key]], Emphasis]

GROUP_COLOURS: dict[str, Colour] = {"R": "black", "RG": "blue", "RGP": "red"}
"""VSE+2AD, caption of Table 1."""


def best_of_groups(entries: Sequence[Entry], keys: Sequence[Key]) -> Emphasis:
    """The best of each column within each section and group, in the group's colour (VSE+2AD Table 1)."""
    groups: dict[tuple[str, str], list[int]] = {}
    for index, entry in enumerate(entries):
        groups.setdefault((entry.place.section, entry.place.group), []).append(index)
    return {
        (index, key): GROUP_COLOURS.get(group, "black")
        for (_, group), members in groups.items()
        for key in keys
        for index in _ranked(entries, key, members, places=1)
    }


def best_of_columns(entries: Sequence[Entry], keys: Sequence[Key]) -> Emphasis:
    """The best of each column, in black."""
    return {
        (index, key): "black"
        for key in keys
        for index in _ranked(entries, key, range(len(entries)), places=1)
    }


def two_best_sums(entries: Sequence[Entry], keys: Sequence[Key]) -> Emphasis:
    """The best RSUM of each test set in red, the second best in black (VSE∞, caption of Table 2)."""
    marked: Emphasis = {}
    for key in (key for key in keys if key[1] == "rsum"):
        best = _ranked(entries, key, range(len(entries)), places=1)
        for index in _ranked(entries, key, range(len(entries)), places=2):
            marked[index, key] = "red" if index in best else "black"
    return marked


def _ranked(entries: Sequence[Entry], key: Key, members: Sequence[int], places: int) -> list[int]:
    """The members that hold one of the `places` highest different values of a column."""
    values = {i: n.value for i in members if (n := entries[i].numbers.get(key)) and n.value is not None}
    highest = [value for value, _ in groupby(sorted(values.values(), reverse=True))][:places]
    return [index for index, value in values.items() if value in highest]
