"""Recalls of one pair, corrected for each other by step-down maxT."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from pipeline.foundation.evaluation.metrics import STATISTICS
from pipeline.foundation.evaluation.metrics.base import at
from pipeline.foundation.evaluation.metrics.standard import Metrics, evaluate
from pipeline.foundation.evaluation.statistics import compare, contrast
from pipeline.foundation.evaluation.statistics.image_hits import MOST, FoldHits, parts
from pipeline.foundation.evaluation.statistics.significance import difference_of_runs, step_down


def swapped(of_images: np.ndarray, samples: int = 999) -> np.ndarray:
    """The means of parts [M, N] after random swaps of whole images: [S, M]."""
    signs = np.random.default_rng(1).choice([-1, 1], (samples, of_images.shape[1]))
    return np.asarray(signs @ of_images.T / of_images.shape[1])


@pytest.mark.specification
def test_they_are_those_of_all_swaps_of_eight_images(rng: np.random.Generator) -> None:
    """By hand: of the 256 ways to swap whole images the share in which any recall that is not
    clearer than this one is as clear, by its t-statistic.
    """
    hits = np.hstack([rng.integers(0, 2, (8, 3)), rng.integers(-2, 6, (8, 3))]).astype(float)
    folds = [FoldHits(hits, np.tile([1, 5], (8, 1)))]
    _, _, _, corrected = difference_of_runs(folds, 40_000, MOST, 0.95, 0)
    values = parts(folds)[:, :6]
    clear = []
    for signs in product([1, -1], repeat=8):
        drawn = np.array(signs)[:, None] * values
        error = drawn.std(0, ddof=1) / np.sqrt(8)
        clear.append(np.abs(drawn.mean(0)) / error)
    table = np.array(clear)
    largest = 0.0
    for place in np.argsort(-table[0]):
        not_clearer = table[:, table[0] <= table[0, place] + 1e-9]
        share = np.mean(not_clearer.max(1) >= table[0, place] - 1e-9)
        largest = max(largest, share)
        assert corrected[place].p == pytest.approx(largest, abs=0.01)
    assert len({each.p for each in corrected}) > 2


def test_one_alone_has_its_own_p_and_level_and_equal_ones_are_not_corrected(
    rng: np.random.Generator,
) -> None:
    alone = rng.normal(0.1, 1, (1, 60))
    drawn = swapped(alone)
    p = (1 + np.sum(np.abs(drawn) >= abs(alone.mean()) - 1e-9)) / 1000
    (own,) = step_down(alone, drawn)
    assert (own.p, own.level) == (p, pytest.approx(0.05))
    scales = np.array([[1.0], [-3.0], [0.2]])
    assert step_down(scales * alone, drawn * scales.T) == [own] * 3


def test_where_no_image_differs_p_is_one_and_nothing_is_corrected_for_it(
    rng: np.random.Generator,
) -> None:
    alone = rng.normal(0.5, 1, (1, 30))
    both = np.concatenate([1e-17 * rng.normal(size=(1, 30)), alone])
    nothing, own = step_down(both, swapped(both))
    assert nothing.p == 1
    assert own.p == step_down(alone, swapped(alone))[0].p < 0.05


def test_none_is_below_its_own_p_nor_below_that_of_a_clearer_one(
    rng: np.random.Generator,
) -> None:
    """And a test at its level is significant after the correction, if the clearer ones are."""
    decided = set[bool]()
    for _ in range(30):
        of_images = rng.normal(rng.uniform(0, 0.5, (6, 1)), 1, (6, 40)) + rng.normal(0, 1, 40)
        drawn = swapped(of_images)
        corrected = step_down(of_images, drawn)
        own = (1 + (np.abs(drawn) >= np.abs(of_images.mean(1)) - 1e-9).sum(0)) / 1000
        clear = np.abs(of_images.mean(1)) / np.sqrt((of_images**2).sum(1))
        order = np.argsort(-clear)
        p = np.array([each.p for each in corrected])
        assert (p >= own).all()
        assert (np.diff(p[order]) >= 0).all()
        levels = np.array([each.level for each in corrected])
        significant = np.logical_and.accumulate((own < levels)[order])
        np.testing.assert_array_equal(significant, p[order] < 0.05)
        decided.update(significant)
    assert decided == {True, False}


def runs(noise: float, seed: int) -> list[Metrics]:
    generator = np.random.default_rng(seed)
    owner = np.repeat(np.arange(60), 5)
    scores = (np.arange(60)[:, None] == owner) + noise * generator.standard_normal((60, 300))
    return [evaluate(scores, owner)]


def test_one_pair_is_corrected_by_it_and_several_pairs_by_holm() -> None:
    """RSUM of one pair is one test by itself."""
    a, b, c = runs(0.5, 0), runs(0.45, 1), runs(0.4, 2)
    (alone,) = contrast.together([(a, b)], 1000, 0)
    tested = compare(a, b, 1000)
    for name in STATISTICS[:-1]:
        corrected = tested[name].within_pair
        assert corrected is not None
        row = at(alone, name)
        assert (row["adjusted"], row["adjusted_by"]) == (corrected.p, "maxT")
    rsum = alone["RSUM"]
    assert (rsum["adjusted"], rsum["adjusted_by"]) == (rsum["p"], None)
    for groups in ([(a, b), (a, c)], [(a + c, b + c)]):
        found = contrast.together(groups, 1000, 0)
        by = {at(each, name)["adjusted_by"] for each in found for name in STATISTICS[:-1]}
        assert by == {"Holm"}


def test_two_that_are_equally_clear_keep_their_places_in_any_order_of_images(
    rng: np.random.Generator,
) -> None:
    """Rounding, which depends on the order of images, does not say which of them is first."""
    alone = rng.normal(0.1, 1, 40)
    both = np.stack([alone, rng.permutation(alone)])
    drawn = swapped(both)
    found = step_down(both, drawn)
    assert found[0].level < found[1].level
    for _ in range(20):
        assert step_down(both[:, rng.permutation(40)], drawn) == found
