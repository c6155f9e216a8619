"""Compact letters: two systems share a letter exactly if a test finds no significant difference.

Source: Piepho, Journal of Computational and Graphical Statistics 2004, insert and absorb, with its
    sweep.
"""

import string
from collections.abc import Collection, Sequence
from itertools import combinations, product
from typing import TypeAlias

# Letters of groups and of notes; of more than 26 groups "aa", "ab" and so on, with commas between.
PAIRS_OF_LETTERS = map("".join, product(string.ascii_lowercase, repeat=2))
LETTERS = (*string.ascii_lowercase, *PAIRS_OF_LETTERS)
Group: TypeAlias = frozenset[int]


def letters(values: Sequence[float], differ: Collection[tuple[int, int]]) -> list[str]:
    """The letters of each system; `a` is that of the largest value.

    Args:
        values: [M], each system's number.
        differ: The places a < b of every two systems that differ significantly.

    >>> letters([70.0, 75.0, 72.0], {(0, 1)})
    ['b', 'a', 'ab']
    """
    order = sorted(range(len(values)), key=lambda system: -values[system])
    groups = [frozenset(order)]
    for one, other in combinations(order, 2):
        if (min(one, other), max(one, other)) in differ:
            groups = _separated(groups, one, other)
    for group in sorted(groups, key=len):
        rest = [other for other in groups if other != group]
        if all(_share_group(rest, pair) for pair in product(group, repeat=2)):
            groups = rest
    groups.sort(key=lambda group: sorted(map(order.index, group)))
    between = ""
    if len(groups) > len(string.ascii_lowercase):
        between = ","
    letters_of: list[list[str]] = [[] for _ in values]
    for letter, group in zip(LETTERS, groups, strict=False):
        for system in group:
            letters_of[system].append(letter)
    return [between.join(of_system) for of_system in letters_of]


def _separated(groups: Sequence[Group], one: int, other: int) -> list[Group]:
    """Groups of which none holds both systems."""
    both = [group for group in groups if group.issuperset((one, other))]
    separated = [group for group in groups if group not in both]
    for group in both:
        for system in (one, other):
            part = group - {system}
            if not any(part <= larger for larger in separated):
                separated = [smaller for smaller in separated if not smaller < part]
                separated.append(part)
    return separated


def _share_group(groups: Sequence[Group], pair: tuple[int, ...]) -> bool:
    return any(group.issuperset(pair) for group in groups)
