"""Compact letters: systems share a letter exactly if a test does not tell them apart.

Source: Piepho, Journal of Computational and Graphical Statistics 2004, insert and absorb, with its
    sweep.
"""

import string
from collections.abc import Collection, Sequence
from itertools import combinations, product

# Letters of groups and of notes; of more than 26 groups "aa", "ab" and so on, with commas between.
LETTERS = (*string.ascii_lowercase, *map("".join, product(string.ascii_lowercase, repeat=2)))


def letters(values: Sequence[float], differ: Collection[tuple[int, int]]) -> list[str]:
    """The letters of each system; `a` is that of the largest value.

    Args:
        values: [M], each system's number.
        differ: The places a < b of every two systems that are told apart.

    >>> letters([70.0, 75.0, 72.0], {(0, 1)})
    ['b', 'a', 'ab']
    """
    order = sorted(range(len(values)), key=lambda system: -values[system])
    groups = [frozenset(order)]
    for pair in combinations(order, 2):
        if (min(pair), max(pair)) in differ:
            both = [group for group in groups if group.issuperset(pair)]
            groups = [group for group in groups if group not in both]
            for part in (group - {system} for group in both for system in pair):
                if not any(part <= group for group in groups):
                    groups = [*(group for group in groups if not group < part), part]
    for group in sorted(groups, key=len):
        rest = [other for other in groups if other != group]
        if all(any(other.issuperset(pair) for other in rest) for pair in product(group, repeat=2)):
            groups = rest
    groups.sort(key=lambda group: sorted(map(order.index, group)))
    between = "," if len(groups) > len(string.ascii_lowercase) else ""
    return [
        between.join(
            letter for letter, group in zip(LETTERS, groups, strict=False) if system in group
        )
        for system in range(len(values))
    ]
