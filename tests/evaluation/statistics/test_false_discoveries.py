"""Benjamini and Yekutieli's q."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.foundation.evaluation.statistics import families
from pipeline.foundation.evaluation.statistics.significance import benjamini_yekutieli


@pytest.mark.specification
def test_an_example_by_hand() -> None:
    """Of four tests, 4 (1 + 1/2 + 1/3 + 1/4) = 25/3: 0.003 · 25/3; 0.024 · 25/6, which is not below
    0.03 · 25/9; 0.6 · 25/12, at most 1.
    """
    assert benjamini_yekutieli([0.03, 0.6, 0.003, 0.024]) == pytest.approx(
        [0.25 / 3, 1, 0.025, 0.25 / 3]
    )
    assert (benjamini_yekutieli([0.04]), benjamini_yekutieli([])) == ([0.04], [])


def test_found_are_as_many_as_the_step_up_procedure_finds(rng: np.random.Generator) -> None:
    """The largest number n whose n-th smallest p is at most 0.05 n / (M (1 + 1/2 + ... + 1/M))."""
    numbers = set[int]()
    for _ in range(50):
        p = rng.random(20) ** 6
        limits = 0.05 * np.arange(1, 21) / (20 * np.sum(1 / np.arange(1, 21)))
        within = np.flatnonzero(np.sort(p) <= limits)
        number = 0
        if len(within):
            number = int(within[-1]) + 1
        q = np.array(benjamini_yekutieli(p.tolist()))
        smallest = np.argsort(p)[:number]
        assert np.flatnonzero(q <= 0.05).tolist() == np.sort(smallest).tolist()
        numbers.add(number)
    assert len(numbers) > 5


def test_at_its_level_a_test_is_found_if_the_others_keep_their_p(rng: np.random.Generator) -> None:
    for _ in range(20):
        p = (rng.random(12) ** 4).tolist()
        corrected = families._by_fdr(p)
        at = max(range(12), key=p.__getitem__)  # not found in any of them
        assert corrected[at].p >= 0.05
        changed = [*p[:at], 0.999 * corrected[at].level, *p[at + 1 :]]
        assert benjamini_yekutieli(changed)[at] < 0.05
