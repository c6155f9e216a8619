"""Several tests at once: Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence


def holm(chances: Sequence[float]) -> list[float]:
    """Each p corrected for the others: with the corrected ones below 0.05 taken as differences, the chance of a single
    false one among all is at most 5 %, however the tests depend on each other.

    Args:
        chances: the p of each test.

    Returns:
        The corrected p, in the same order, never below the given and at most 1.

    Source: Holm, Scandinavian Journal of Statistics 1979.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected, largest = [0.0] * len(chances), 0.0
    for done, at in enumerate(sorted(range(len(chances)), key=lambda at: chances[at])):
        largest = max(largest, min(1.0, (len(chances) - done) * chances[at]))
        corrected[at] = largest
    return corrected
