"""Equality of two systems within a margin, by hand and by what nothing may change."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from pipeline.foundation.evaluation.metrics import STATISTICS
from pipeline.foundation.evaluation.metrics.base import Statistic
from pipeline.foundation.evaluation.statistics.equivalence import (
    Changes,
    bootstrap_t,
    equality,
    of_runs,
)
from pipeline.foundation.evaluation.statistics.image_hits import MOST, FoldHits, contributions
from pipeline.foundation.evaluation.statistics.significance import difference_over_seeds
from pipeline.foundation.evaluation.statistics.welch import Runs
from pipeline.foundation.parts.errors import InputError

CAPTIONS = 5


def folds(differences: np.ndarray) -> list[FoldHits]:
    """The difference in hits of each image, [N, 6]."""
    queries = np.tile([1, CAPTIONS], (len(differences), 1))
    return [FoldHits(differences.astype(float), queries)]


def changed(images: int, generator: np.random.Generator, share: float = 0.1) -> np.ndarray:
    """Systems that do not differ: as many queries are gained as lost."""
    drawn = generator.random((images, 6))
    signs = (drawn < share / 2) * 1 - (drawn > 1 - share / 2)
    sizes = np.hstack([np.ones((images, 3)), generator.integers(1, 6, (images, 3))])
    return np.asarray(signs * sizes)


def ends(found: dict) -> np.ndarray:
    return np.array([[each.interval.low, each.interval.high] for each in found.values()])


@pytest.mark.specification
def test_the_bootstrap_is_that_of_all_test_sets_of_five_images(rng: np.random.Generator) -> None:
    """By hand: the t-statistics of all 3,125 ways to draw five of five images, each with one query
    more in its standard error.
    """
    minus = folds(rng.uniform(-1, 1, (5, 6)))
    unit = np.arange(20.0, 27.0)
    low, high = bootstrap_t(minus, unit, draws=40_000)
    values = contributions(minus)
    gaps = np.array([100 * minus[0].hits[:, at].sum() / (5, 25)[at // 3] for at in range(6)])
    sizes = []
    for drawn in product(range(5), repeat=5):
        of_set = values[list(drawn)]
        sizes.append(of_set.mean(0) / np.sqrt(of_set.var(0, ddof=1) / 5 + unit**2))
    error = np.sqrt(values.var(0, ddof=1) / 5 + unit**2)
    by_hand = np.quantile(sizes, [0.95, 0.05], axis=0)
    by_hand = np.append(gaps, gaps.sum()) - by_hand * error
    np.testing.assert_allclose([low, high], by_hand, atol=0.02 * error.max())


def test_for_images_that_were_not_seen_an_end_is_that_of_clopper_and_pearson() -> None:
    """Of 400 images k gained one query and none lost any."""
    for gained in range(12):
        differences = np.zeros((400, 6))
        differences[:gained, 0] = 1
        exact = 100 * stats.beta.ppf(0.95, gained + 1, 400 - gained)
        nothing = np.zeros(7)
        _, high = Changes.of(folds(differences)).wider(nothing, nothing)
        assert exact <= high[0] < 1.09 * exact


def test_of_few_images_that_change_wholly_the_bootstrap_knows_the_skewness(
    rng: np.random.Generator,
) -> None:
    """Many images gain or lose one caption of twenty, one gains all: an end for independent queries
    is too near.
    """
    gained = np.where(rng.random(200) < 0.5, 1, -1) * (rng.random(200) < 0.5)
    gained[:4] = 20
    queries = np.tile([1, 20], (200, 1))
    hits = np.zeros((200, 6))
    hits[:, 3] = gained
    minus = [FoldHits(hits, queries)]
    found = of_runs(minus, 1)[STATISTICS[3]].interval
    alone = Changes.of(minus).wider(np.full(7, found.value), np.full(7, found.value))
    assert found.high > alone[1][3] + 0.1
    assert found.low == alone[0][3]


def test_neither_the_order_of_images_nor_which_system_is_first_matters(
    rng: np.random.Generator,
) -> None:
    for images in (7, 60):
        differences = changed(images, rng, 0.5)
        found = ends(of_runs(folds(differences), 0.5))
        shuffled = ends(of_runs(folds(rng.permutation(differences)), 0.5))
        swapped = ends(of_runs(folds(-differences), 0.5))
        np.testing.assert_array_equal(shuffled, found)
        np.testing.assert_array_equal(-swapped[:, ::-1], found)
    both = np.concatenate([differences, -differences])
    symmetric = ends(of_runs(folds(both), 0.5))
    np.testing.assert_array_equal(symmetric[:, 0], -symmetric[:, 1])


def test_twenty_images_that_agree_show_no_equality_and_seven_hundred_do() -> None:
    few = of_runs(folds(np.zeros((20, 6))), 0.5)
    assert not any(each.is_shown for each in few.values())
    assert min(each.needs()["images"] or 0 for each in few.values()) > 700
    many = of_runs(folds(np.zeros((700, 6))), 0.5)
    assert all(each.is_shown for each in many.values())
    assert {each.margin for each in many.values()} == {0.5, 3.0}


def test_a_difference_is_not_equal_within_less_and_any_is_within_enough(
    rng: np.random.Generator,
) -> None:
    """Where lists rank one direction, RSUM has three recalls."""
    differences = changed(300, rng)
    differences[:60, 0] = 1.0
    found = of_runs(folds(differences), 15)[STATISTICS[0]]
    assert found.interval.value > 15
    assert not found.is_shown
    assert all(each.is_shown for each in of_runs(folds(differences), 99).values())
    differences[:, 3:] = 0
    one = [FoldHits(differences, np.tile([1, 0], (300, 1)))]
    assert of_runs(one, 0.5)[STATISTICS[-1]].margin == 1.5


def test_further_metrics_change_nothing_of_recalls(rng: np.random.Generator) -> None:
    """The margin of each is that of a recall."""
    differences = changed(60, rng)
    gain = differences[:, 3:4] + rng.uniform(-0.1, 0.1, (60, 1))
    name = Statistic("t2i", "nDCG@10")
    for sign in (1, -1):
        minus = folds(sign * np.hstack([differences, gain]))
        found = of_runs([replace(minus[0], further=(name,))], 0.5)
        alone = of_runs(folds(sign * differences), 0.5)
        assert [found[each].interval for each in STATISTICS] == [
            each.interval for each in alone.values()
        ]
        assert (found[name].margin, found["", "RSUM"].margin) == (0.5, 3.0)
        assert found[name].interval.low < found[name].interval.value < found[name].interval.high


@pytest.mark.specification
def test_so_many_images_show_it_in_four_of_five_cases(rng: np.random.Generator) -> None:
    measured = of_runs(folds(changed(100, rng)), 2)
    for at in (3, 6):
        images = measured[STATISTICS[at]].needs()["images"]
        assert images is not None
        shown = 0
        for _ in range(100):
            drawn = of_runs(folds(changed(images, rng)), 2, draws=200)
            shown += drawn[STATISTICS[at]].is_shown
        assert 65 <= shown <= 95


def test_no_number_of_images_shows_a_margin_that_is_too_small(rng: np.random.Generator) -> None:
    tiny = of_runs(folds(changed(100, rng)), 1e-4)
    assert {each.needs()["images"] for each in tiny.values()} == {None}


def test_images_that_are_there_already_would_not_show_equality() -> None:
    """Of 5,000 images 30 are gained and 8 lost, so that the interval is not within 0.5; of systems
    that do not differ, 3,100 images would show equality.
    """
    differences = np.zeros((5000, 6))
    differences[:30] = 1
    differences[30:38] = -1
    found = of_runs(folds(differences), 0.5)[STATISTICS[0]]
    assert 0.5 < found.interval.high < 0.7
    assert found.needs() == {"images": None}


def recipe(seeds: int, generator: np.random.Generator, images: int = 400) -> list[list[FoldHits]]:
    """Runs that have half of the hits, each with others on a part of the images."""
    queries = np.tile([1, CAPTIONS], (images, 1))
    same = np.arange(images)[:, None] % 2 * queries[:, [0, 0, 0, 1, 1, 1]]
    runs = []
    for _ in range(seeds):
        own = (generator.random((images, 6)) < 0.1) * generator.choice([-1, 1], (images, 6))
        hits = np.clip(same + own, 0, queries[:, [0, 0, 0, 1, 1, 1]])
        runs.append([FoldHits(hits.astype(float), queries)])
    return runs


def test_over_seeds_the_interval_is_that_of_the_test_over_seeds(rng: np.random.Generator) -> None:
    """And one seed of a system says nothing of others: the interval is that of images."""
    old = recipe(3, rng)
    new = recipe(4, rng)
    low, high, _ = difference_over_seeds(Runs.of(old), Runs.of(new), MOST, 0.9)
    found = equality(old, new, 0.5)
    by_test = np.stack([low, high], axis=1)
    np.testing.assert_allclose(ends(found)[:6], by_test[:6], atol=1e-8)
    for of_statistic in found.values():
        needs = of_statistic.needs()
        assert needs["seeds"] is None or needs["seeds"] > 4
        assert needs["images"] is None or needs["images"] > 400
    assert all(each.is_shown for each in equality(old, new, 99).values())
    over_images = equality(old, new, 0.5, over_seeds=False)
    assert ends(equality(old[:1], new, 0.5)).tolist() != ends(found).tolist()
    assert set(over_images[STATISTICS[0]].needs()) == {"images"}


def test_seeds_that_agree_on_few_images_show_no_equality() -> None:
    queries = np.tile([1, CAPTIONS], (110, 1))
    runs = [[FoldHits(np.zeros((110, 6)), queries)]] * 5
    assert not any(each.is_shown for each in equality(runs, runs, 0.5).values())


@pytest.mark.parametrize("margin", [0.0, -1.0, 100.0, math.nan, math.inf])
def test_a_margin_is_above_zero_and_below_all(margin: float) -> None:
    with pytest.raises(InputError, match="a margin above 0"):
        of_runs(folds(np.zeros((5, 6))), margin)
