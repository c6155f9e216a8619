"""Every two of several systems, corrected for each other by step-down maxT."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from pipeline.foundation.evaluation.metrics import RSUM, STATISTICS
from pipeline.foundation.evaluation.metrics.base import at
from pipeline.foundation.evaluation.metrics.standard import Metrics, evaluate
from pipeline.foundation.evaluation.statistics import all_pairs as rules, contrast
from pipeline.foundation.evaluation.statistics.all_pairs import (
    Corrected,
    Pool,
    all_pairs,
    step_down,
    triples,
)
from pipeline.foundation.evaluation.statistics.families import EveryTwo
from pipeline.foundation.evaluation.statistics.significance import hits_of

PAIRS = list(combinations(range(3), 2))


def drawn(images: int, rng: np.random.Generator, statistics: int = 2) -> np.ndarray:
    """The parts of three systems, of which the last is better."""
    hard = rng.normal(size=(1, statistics, images))
    better = np.array([0, 0.1, 1.5])[:, None, None]
    return np.asarray(hard + better + rng.normal(size=(3, statistics, images)))


@pytest.mark.specification
def test_corrected_p_are_those_of_all_swaps_of_ten_images(rng: np.random.Generator) -> None:
    """By hand: of the 1,024 ways to swap whole images the share in which any test that is not
    clearer than this one is as clear, by its t-statistic with a standard error of each swap.
    """
    parts = drawn(10, rng)
    found = all_pairs(parts, 40_000, 0)
    tests = [(*pair, statistic) for pair in PAIRS for statistic in (0, 1)]
    clear = []
    for signs in product([1, -1], repeat=10):
        of_swap = []
        for first, second, statistic in tests:
            swapped = np.array(signs) * (parts[second, statistic] - parts[first, statistic])
            of_swap.append(abs(swapped.mean()) / (swapped.std(ddof=1) / np.sqrt(10)))
        clear.append(of_swap)
    table = np.array(clear)
    largest = 0.0
    for place in np.argsort(-table[0]):
        not_clearer = table[:, table[0] <= table[0, place] + 1e-9]
        largest = max(largest, np.mean(not_clearer.max(1) >= table[0, place] - 1e-9))
        own = np.mean(table[:, place] >= table[0, place] - 1e-9)
        first, second, statistic = tests[place]
        for a, b in ((first, second), (second, first)):
            assert found.adjusted[a, b, statistic] == pytest.approx(largest, abs=0.01)
            assert found.p[a, b, statistic] == pytest.approx(own, abs=0.01)
        gap = parts[second, statistic].mean() - parts[first, statistic].mean()
        assert found.difference[first, second, statistic] == pytest.approx(gap)
        assert found.difference[second, first, statistic] == pytest.approx(-gap)
    assert len(np.unique(found.adjusted)) > 4
    assert (found.adjusted < 0.05).any()


@pytest.mark.parametrize("signs_at_once", [1, 1 << 21])
def test_neither_the_order_of_images_nor_of_systems_changes_them(
    signs_at_once: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Discrete hits, among them two systems with the same number of them."""
    monkeypatch.setattr(rules, "SIGNS_AT_ONCE", signs_at_once)
    parts = rng.integers(0, 3, (4, 2, 60)).astype(float)
    parts[1] = parts[0][:, ::-1]
    found = all_pairs(parts, 300, 1)
    for _ in range(5):
        images = rng.permutation(60)
        systems = rng.permutation(4)
        again = all_pairs(parts[systems][:, :, images], 300, 1)
        assert np.array_equal(again.adjusted, found.adjusted[systems][:, systems])
        assert np.array_equal(again.p, found.p[systems][:, systems])


def test_equal_tests_cost_nothing_and_systems_that_never_differ_have_p_one(
    rng: np.random.Generator,
) -> None:
    parts = drawn(40, rng)
    found = all_pairs(parts, 500, 0)
    scaled = all_pairs(np.concatenate([parts, -3 * parts, 0.2 * parts], axis=1), 500, 0)
    assert np.array_equal(scaled.adjusted, np.tile(found.adjusted, 3))
    twice = all_pairs(parts[[0, 1, 2, 2]], 500, 0)
    assert np.array_equal(twice.adjusted[:3, :3], found.adjusted)
    assert (twice.p[2:, 2:] == 1).all()


def test_a_copy_of_a_system_needs_as_many_images_as_the_system(rng: np.random.Generator) -> None:
    """Equal tests have one level, whichever of them is named first, also of so few images that the
    level is Holm's.
    """
    parts = rng.normal(0.1, 1, (3, 1, 4))
    pool = Pool(parts[[0, 1, 2, 1]], 999, 0)
    tests = triples([(0, 1), (0, 2), (0, 3), (1, 2), (2, 3)], [0])
    (corrected,) = step_down([pool], [tests])
    assert corrected[0] == corrected[2]
    assert corrected[3] == corrected[4]
    assert len({each.level for each in corrected}) == 3


def test_none_is_below_its_own_p_nor_below_that_of_a_clearer_one(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a test at its level is significant after the correction, if the clearer ones are,
    however many tests are corrected at once.
    """
    decided = set[bool]()
    for _ in range(20):
        parts = drawn(40, rng, statistics=3)
        pool = Pool(parts, 999, 3)
        tests = triples(PAIRS, range(3))
        (corrected,) = step_down([pool], [tests])
        with monkeypatch.context() as at_once:
            at_once.setattr(rules, "SWAPPED_AT_ONCE", 2 * 999)
            assert step_down([pool], [tests]) == [corrected]
        sizes = pool.sizes(tests)
        order = np.argsort(-sizes)
        own = (1 + (pool.swapped(tests) >= sizes - 1e-9).sum(0)) / 1000
        p = np.array([each.p for each in corrected])
        levels = np.array([each.level for each in corrected])
        assert (p >= own).all()
        assert (np.diff(p[order]) >= 0).all()
        significant = np.logical_and.accumulate((own < levels)[order])
        np.testing.assert_array_equal(significant, p[order] < 0.05)
        decided.update(significant)
    assert decided == {True, False}


def test_of_many_tests_the_level_is_about_that_of_the_normal_distribution(
    rng: np.random.Generator,
) -> None:
    """A thousand swaps do not show how rare the rarest are; of 190 independent tests it is 0.05 /
    190.
    """
    pool = Pool(rng.normal(size=(2, 190, 400)), 1000, 0)
    (corrected,) = step_down([pool], [triples([(0, 1)], range(190))])
    levels = [each.level for each in corrected]
    assert min(levels) == pytest.approx(0.05 / 190, rel=0.5)
    assert max(levels) == pytest.approx(0.05)


def test_a_size_is_the_mean_over_the_deviation_among_swaps(rng: np.random.Generator) -> None:
    """By hand, for pairs with and without the first system."""
    parts = drawn(30, rng)
    tests = triples(PAIRS, [0, 1])
    sizes = Pool(parts, 10, 0).sizes(tests)
    for size, (first, second, statistic) in zip(sizes, tests.tolist(), strict=True):
        apart = parts[second, statistic] - parts[first, statistic]
        assert size == pytest.approx(abs(apart.sum()) / np.sqrt((apart**2).sum()))


def test_two_pools_are_corrected_for_each_other_as_if_they_were_independent(
    rng: np.random.Generator,
) -> None:
    """Of two equal tests on other images the clearer one has 1 - (1 - p)² of its own p."""
    parts = rng.normal(0.3, 1, (2, 1, 50))
    pools = [Pool(parts, 20_000, seed) for seed in (0, 1)]
    tests = triples([(0, 1)], [0])
    ((alone,),) = step_down(pools[:1], [tests])
    ((first,), (second,)) = step_down(pools, [tests, tests])
    assert first.p == pytest.approx(1 - (1 - alone.p) ** 2, abs=0.01)
    assert second.p == first.p
    assert 0.02 < alone.p < 0.9


def runs(noise: float, seed: int) -> list[Metrics]:
    generator = np.random.default_rng(seed)
    owner = np.repeat(np.arange(60), 5)
    scores = (np.arange(60)[:, None] == owner) + noise * generator.standard_normal((60, 300))
    return [evaluate(scores, owner)]


def test_what_is_compared_over_images_is_corrected_by_it_and_over_seeds_by_holm() -> None:
    """RSUM of one pair is one test by itself, and no corrected p is below its own."""
    a, b, c = runs(0.5, 0), runs(0.45, 1), runs(0.4, 2)
    ((alone,),) = contrast.together([[(a, b)]], 1000, 0)
    assert (alone["RSUM"]["adjusted"], alone["RSUM"]["adjusted_by"]) == (alone["RSUM"]["p"], None)
    cases = {
        "maxT": ([[(a, b)]], [[(a, b), (a, c)]], [[(a, b)], [(b, c)]]),
        "Holm": ([[(a + c, b + c)]],),
    }
    for by, groups in cases.items():
        for pools in groups:
            found = contrast.together(pools, 1000, 0)
            rows = []
            for of_pair in [of_pair for pool in found for of_pair in pool]:
                rows += [at(of_pair, name) for name in STATISTICS[:-1]]
            assert {row["adjusted_by"] for row in rows} == {by}
            assert all(row["adjusted"] >= row["p"] for row in rows)
            assert any(row["adjusted"] > row["p"] for row in rows)


def test_languages_are_corrected_as_if_their_images_were_others() -> None:
    """Two that are equal would cost nothing by the same swaps."""
    pair = (runs(0.5, 0), runs(0.45, 1))
    ((alone,),) = contrast.together([[pair]], 4000, 0)
    ((first,), (second,)) = contrast.together([[pair], [pair]], 4000, 0)
    p = alone["RSUM"]["p"]
    assert 0.02 < p < 0.8
    for each in (first, second):
        assert each["RSUM"]["adjusted"] == pytest.approx(1 - (1 - p) ** 2, abs=0.03)


def test_one_test_alone_is_not_corrected(rng: np.random.Generator) -> None:
    pool = Pool(rng.normal(0.1, 1, (2, 1, 60)), 999, 0)
    tests = triples([(0, 1)], [0])
    p = (1 + np.sum(pool.swapped(tests) >= pool.sizes(tests) - 1e-9)) / 1000
    ((own,),) = step_down([pool], [tests])
    assert own == Corrected(p, pytest.approx(0.05))


def test_bold_and_letters_decide_as_compare_does() -> None:
    """By the same p, of two systems and of three."""
    systems = [runs(0.5, 0), runs(0.48, 1), runs(0.45, 2)]
    for count in (2, 3):
        places = list(combinations(range(count), 2))
        pairs = [(systems[first], systems[second]) for first, second in places]
        (contrasts,) = contrast.together([pairs], 199, 0)
        tests = EveryTwo.of([hits_of(system) for system in systems[:count]], 199)
        assert tests.places == places
        for found, of_pair in zip(tests.corrected(RSUM).corrected, contrasts, strict=True):
            assert found.p == of_pair["RSUM"]["adjusted"]
