"""What would make a difference significant: the power at that number, where the truth is known."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

from pipeline.foundation.evaluation.statistics import power
from pipeline.foundation.evaluation.statistics.power import (
    LEAST_SIMULATED,
    OverImages,
    OverSeeds,
)
from pipeline.foundation.evaluation.statistics.welch import Runs


def of_shares(shares: list[float], images: int = 2000) -> OverImages:
    """Single runs, of whose images these shares differ by -1, 0 and 1."""
    return OverImages(
        np.repeat([-1.0, 0.0, 1.0], np.round(np.array(shares) * images).astype(int)), 999
    )


@pytest.mark.specification
@pytest.mark.parametrize("shares", [[0.05, 0.75, 0.2], [0.03, 0.9, 0.07], [0.0, 0.98, 0.02]])
def test_the_number_of_images_tells_in_eight_of_ten_cases(
    shares: list[float], rng: np.random.Generator
) -> None:
    """With one query an image the test is that of McNemar, whose p is exact."""
    images = of_shares(shares).needs(0.05)["images"]
    assert images is not None
    worse, _, better = rng.multinomial(images, shares, size=20_000).T
    p = 2 * stats.binom.sf(np.maximum(worse, better) - 1, worse + better, 0.5)
    assert np.mean(p < 0.05) == pytest.approx(0.8, abs=0.03)


@pytest.mark.slow
def test_captions_with_many_ties_have_as_many_values_as_images(rng: np.random.Generator) -> None:
    """A normal difference: the number is that of a t test, but for the uncertainty of its
    spread.
    """
    values = rng.standard_normal(1000)
    images = OverImages(values - values.mean() + 0.06, 999).needs(0.05)["images"]
    assert images == pytest.approx((1.96 + 0.84) ** 2 * values.var() / 0.06**2, rel=0.06)


def test_a_smaller_difference_and_a_smaller_level_need_more_images() -> None:
    numbers = [
        of_shares(shares).needs(level)["images"] or 0
        for shares, level in (
            ([0.1, 0.7, 0.2], 0.05),
            ([0.1, 0.7, 0.2], 0.005),
            ([0.14, 0.7, 0.16], 0.05),
        )
    ]
    assert numbers == sorted(numbers)
    assert numbers[2] == pytest.approx(25 * numbers[0], rel=0.1)


def test_below_the_least_simulated_level_the_number_goes_on_as_above_it() -> None:
    """And it does not depend on how many swaps the test draws, as p is corrected for many tests."""
    values = np.repeat([-100.0, 0.0, 100.0], [250, 4400, 350])
    above = OverImages(values, 10**6).needs(1.01 * LEAST_SIMULATED)["images"]
    below = OverImages(values, 1000).needs(0.99 * LEAST_SIMULATED)["images"]
    assert above is not None
    assert below == pytest.approx(above, rel=0.03)
    critical = NormalDist().inv_cdf(1 - 1e-6 / 2) + NormalDist().inv_cdf(0.8)
    by_hand = (critical / values.mean()) ** 2 * (values**2).mean()
    assert OverImages(values, 1000).needs(1e-6)["images"] == pytest.approx(by_hand, rel=0.03)


def test_too_few_swaps_for_the_level_have_no_power() -> None:
    """The least p is 1 / (1 + swaps): of 19 swaps 0.05, which is not below 0.05."""
    values = np.ones(100)
    assert OverImages(values, 19).power(10_000, 0.05) == 0
    assert OverImages(values, 20).power(10_000, 0.05) == 1


@pytest.mark.parametrize(
    "values", [np.repeat([-1.0, 1.0], [30, 70]), np.repeat([-9.0, 0.0, 9.0], [2, 90, 8])]
)
def test_the_spread_of_a_test_set_is_as_uncertain_as_drawn_ones_are(
    values: np.ndarray, rng: np.random.Generator
) -> None:
    """A variance of few different values varies less than that of a normal distribution, one of
    rare large values more.
    """
    drawn = rng.choice(values, (20_000, len(values))).var(1) / values.var()
    assert np.var(power._stretch(values, rng) ** 2) == pytest.approx(np.var(drawn), rel=0.15)


@pytest.mark.parametrize("values", [np.zeros(10), np.array([1.0, -1.0] * 50), np.full(3, 1e-9)])
def test_no_number_of_images_tells_no_difference(values: np.ndarray) -> None:
    images = OverImages(values, 999).needs(0.05)["images"]
    assert images is None if values.mean() == 0 else images is not None


def test_the_order_of_two_systems_does_not_change_what_is_needed(
    rng: np.random.Generator,
) -> None:
    """Single runs with ties and without, and recipes of two and three seeds."""
    images = 300
    ties = rng.choice([-1.0, 0.0, 1.0], images, p=[0.1, 0.75, 0.15])
    for values in (ties, rng.normal(0.1, 1, images)):
        forwards, backwards = (OverImages(signed, 999).needs(0.01) for signed in (values, -values))
        assert forwards == backwards
        assert forwards["images"] is not None
    first, second = (
        Runs(values.mean(2), values.transpose(0, 2, 1) / images)
        for values in (
            rng.normal(mean, 1, (seeds, 1, images)) for mean, seeds in ((0, 2), (0.1, 3))
        )
    )
    most = np.array([100.0])
    (forwards,) = OverSeeds.of(first, second, most)
    (backwards,) = OverSeeds.of(second, first, most)
    assert forwards.needs(0.01) == backwards.needs(0.01)


def over_seeds(
    difference: float, seeds: int, shared: float = 0.0, deviations: tuple[float, float] = (1, 1)
) -> OverSeeds:
    return OverSeeds(
        difference, 1000, shared, np.square(deviations), np.zeros(2), np.array([seeds, seeds])
    )


def test_the_power_of_seeds_whose_spread_is_known_is_that_of_a_t_test() -> None:
    for count in (6, 15):
        found = over_seeds(1.2, 10**7).power(np.array([count, count]), 1000, 0.05)
        freedom, apart = 2 * count - 2, 1.2 / np.sqrt(2 / count)
        critical = stats.t.ppf(0.975, freedom)
        expected = stats.nct.sf(critical, freedom, apart) + stats.nct.cdf(-critical, freedom, apart)
        assert found == pytest.approx(expected, abs=0.02)


def test_what_is_known_of_seeds_is_of_each_side(rng: np.random.Generator) -> None:
    """Variances of single runs over seeds, whichever side has more of them."""
    sides = [Runs(rng.random((seeds, 2)), rng.standard_normal((seeds, 30, 2))) for seeds in (2, 5)]
    for first, second in (sides, sides[::-1]):
        for at, known in enumerate(OverSeeds.of(first, second, np.ones(2))):
            own = [first.values[:, at], second.values[:, at]]
            assert known.difference == pytest.approx(own[1].mean() - own[0].mean())
            assert known.images == 30
            assert known.seeds.tolist() == [len(own[0]), len(own[1])]
            assert known.variance == pytest.approx([values.var(ddof=1) for values in own])
            alone = [
                side.contributions[..., at].var(0, ddof=1).sum() / (30 * 29)
                for side in (first, second)
            ]
            assert known.by_image == pytest.approx(alone)


def test_more_images_lessen_the_variance_over_images_alone() -> None:
    """That which all seeds share, and that on which single runs fail; not that of the seeds."""
    seeds, ones = np.array([3, 3]), np.ones(2)
    for shared, of_seeds, by_image in ((0.4, 0.0, 0.0), (0.0, 0.0, 0.5), (0.1, 0.3, 0.2)):
        few = OverSeeds(1.5, 1000, shared, (of_seeds + by_image) * ones, by_image * ones, seeds)
        many = OverSeeds(
            1.5, 4000, shared / 4, (of_seeds + by_image / 4) * ones, by_image / 4 * ones, seeds
        )
        found = [each.power(seeds, 4000, 0.05) for each in (few, many)]
        assert found[0] == pytest.approx(found[1], abs=1e-3)
        assert found[0] > few.power(seeds, 1000, 0.05) + 0.02


@pytest.mark.parametrize("count", [2, 3])
def test_the_power_of_few_seeds_is_that_of_simulated_runs(
    count: int, rng: np.random.Generator
) -> None:
    one, other = rng.standard_normal((2, 20_000, count))
    p = stats.ttest_ind(one, other + 3, axis=1, equal_var=False).pvalue
    found = over_seeds(3, 10**7).power(np.array([count, count]), 1000, 0.05)
    assert found == pytest.approx(np.mean(p < 0.05), abs=0.02)


@pytest.mark.slow
def test_few_seeds_need_more_as_their_spread_is_uncertain() -> None:
    numbers = [over_seeds(1.0, seeds).needs(0.05)["seeds"] or 0 for seeds in (2, 3, 5, 10**6)]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[-1] == 17  # of an ordinary power analysis: d = 1, 17 a group


@pytest.mark.slow
def test_images_that_all_seeds_share_set_a_limit() -> None:
    """The other way round, no number of images makes up for two seeds."""
    assert over_seeds(1.0, 5, shared=0.2).needs(0.05)["seeds"] is None
    assert over_seeds(1.0, 2, shared=0.01).needs(0.05)["images"] is None
    images = over_seeds(1.0, 5, shared=0.5, deviations=(0.01, 0.01)).needs(0.05)["images"]
    assert images == pytest.approx(1000 * 0.5 * (1.96 + 0.84) ** 2, rel=0.05)
    assert over_seeds(1.0, 5, shared=0.5, deviations=(0, 0)).needs(0.05)["images"] == pytest.approx(
        images, rel=0.05
    )
    assert over_seeds(0.0, 5).needs(0.05) == {"seeds": None, "images": None}


@pytest.mark.parametrize("enough", [3, 50, 777, 3000, 1_000_000])
def test_the_least_number_is_found_to_a_hundredth_in_a_few_simulations(enough: int) -> None:
    tried: list[int] = []

    def simulated(number: int) -> float:
        tried.append(number)
        return float(number >= enough)

    found = power.least(simulated, 2, power.MOST_IMAGES)
    assert found is not None
    assert enough <= found <= 1.01 * enough
    assert len(tried) <= 15  # halving alone takes 20 and more
    assert power.least(simulated, 2, enough - 1) is None
