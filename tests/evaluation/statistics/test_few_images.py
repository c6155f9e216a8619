"""Intervals of differences where few images differ, so that images that were not seen count."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipeline.foundation.evaluation.metrics import STATISTICS
from pipeline.foundation.evaluation.statistics.image_hits import FoldHits
from pipeline.foundation.evaluation.statistics.significance import Comparison, compare_hits

GAINED = (0.1, 0.05, 0.02, 0.1, 0.05, 0.02)
"""The share of images of which the second system alone finds queries, for each recall."""
LOST = (0.04, 0.01, 0.0, 0.04, 0.01, 0.01)
CAPTIONS = 5


def compared(differences: np.ndarray, swaps: int = 199) -> list[Comparison]:
    """The recalls of a pair of systems, each image's difference in hits given [N, 6]."""
    queries = np.tile([1, CAPTIONS], (len(differences), 1))
    before = FoldHits(np.zeros(differences.shape), queries)
    after = FoldHits(differences.astype(float), queries)
    tested = compare_hits([[before]], [[after]], swaps)
    return [tested[name] for name in STATISTICS[:6]]


@pytest.mark.specification
@pytest.mark.parametrize("images", [50, 100])
def test_a_difference_is_in_the_interval_in_ninety_four_of_a_hundred_test_sets(
    images: int, rng: np.random.Generator
) -> None:
    """One to five captions of an image change together."""
    true = 100 * (np.array(GAINED) - LOST) * ([1.0] * 3 + [3 / CAPTIONS] * 3)
    held = []
    for _ in range(500):
        drawn = rng.random((images, 6))
        signs = (drawn < GAINED) * 1 - (drawn > 1 - np.array(LOST))
        changed = np.hstack([np.ones((images, 3)), rng.integers(1, CAPTIONS + 1, (images, 3))])
        ends = [each.difference for each in compared(signs * changed)]
        held.append([end.low <= at <= end.high for end, at in zip(ends, true, strict=True)])
    assert np.mean(held, axis=0).min() >= 0.94


def test_of_systems_that_do_not_differ_at_all_other_images_may() -> None:
    """The interval of 40 queries, all alike, by hand."""
    t = stats.t.ppf(0.975, 39)
    queries = 40 + t**2 / 2
    half = 100 * t * np.sqrt(t**2 / 2 / queries / queries)
    for each in compared(np.zeros((40, 6))):
        assert each.p == 1
        assert (each.difference.low, each.difference.high) == pytest.approx((-half, half))


def test_it_still_leaves_out_zero_where_p_is_below_its_level() -> None:
    """Six images of twelve gained one caption of five and none lost any: p is 1/32. The widened
    interval alone would hold 0, so the end by swaps remains.
    """
    differences = np.zeros((12, 6))
    differences[:6, 3] = 1
    better = compared(differences, 4000)[3]
    worse = compared(-differences, 4000)[3]
    assert better.p < 0.05
    assert worse.p == better.p
    assert 0 < better.difference.low < 10 < better.difference.high
    assert worse.difference.low < -10 < worse.difference.high < 0
