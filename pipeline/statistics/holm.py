"""Several tests at once: Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence


def holm(chances: Sequence[float]) -> list[float]:
    """Correct the p-values of several tests for each other.

    If corrected values below 0.05 are taken as differences, the chance of one or more false differences is at most 5 %,
    however the tests depend on each other.

    Args:
        chances: The p of each test.

    Returns:
        The corrected p, in the same order; each is at least the given p and at most 1.

    Source: Holm, Scandinavian Journal of Statistics 1979.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected, largest = [0.0] * len(chances), 0.0
    for done, at in enumerate(sorted(range(len(chances)), key=lambda at: chances[at])):
        largest = max(largest, min(1.0, (len(chances) - done) * chances[at]))
        corrected[at] = largest
    return corrected
