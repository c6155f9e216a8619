"""Holm's correction."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.statistics import enough_samples, holm
from pipeline.foundation.evaluation.statistics.contrast import together


@pytest.mark.specification
def test_an_example_by_hand() -> None:
    """0.01 · 4; 0.02 · 3; 0.03 · 2; 0.6 · 1; and no p falls below a smaller one's."""
    assert holm([0.03, 0.6, 0.01, 0.02]) == pytest.approx([0.06, 0.6, 0.04, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert (holm([0.04]), holm([])) == ([0.04], [])


def test_a_false_difference_among_twenty_is_as_rare_as_for_one(rng: np.random.Generator) -> None:
    chances = rng.random((2000, 20))
    assert np.mean(chances.min(1) < 0.05) > 0.6
    assert np.mean([min(holm(each)) < 0.05 for each in chances.tolist()]) == pytest.approx(
        0.05, abs=0.015
    )


def test_enough_swaps_leave_the_least_p_at_half_the_level_after_the_correction() -> None:
    for tests in (1, 10, 100):
        least = 1 / (1 + enough_samples(1, tests))
        assert 0.024 < holm([least] * tests)[0] < 0.025
    assert enough_samples(1000, 10) == 1000


def test_pairs_have_swaps_enough_for_all_recalls_that_are_corrected_together() -> None:
    """All images are found first by one system and last by the other."""
    scores = np.eye(30)
    worst, best = ([evaluate(each, np.arange(30))] for each in (-scores, scores))
    pairs = [(worst * 2, best * 2), (best, worst)]
    row = together([pairs], samples=1, seed=0)[0][1]["i2t"]["R@10"]
    assert row["adjusted_by"] == "Holm"
    assert row["adjusted"] == pytest.approx(6 * row["p"])
    assert row["adjusted"] < 0.05
