"""Comparisons of two systems, of single runs and over seeds, and spreads, where the truth is
known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats
from sorting import noisy_pairs

from pipeline.foundation.evaluation.metrics import STATISTICS, Metrics, evaluate
from pipeline.foundation.evaluation.retrieval import Embeddings, Protocol, consecutive_captions
from pipeline.foundation.evaluation.statistics import (
    EveryTwo,
    compare,
    contrast,
    deviations,
    holm,
    significance,
)
from pipeline.foundation.evaluation.statistics.families import ComparedPairs
from pipeline.foundation.evaluation.statistics.image_hits import MOST, FoldHits
from pipeline.foundation.evaluation.statistics.significance import (
    Hits,
    difference_of_runs,
    difference_over_seeds,
)
from pipeline.foundation.evaluation.statistics.welch import Runs, variances
from pipeline.foundation.parts.errors import InputError


def system(noise: float, seed: int, images: int = 200, folds: int = 1) -> Metrics:
    pictures, captions = noisy_pairs(images, 5, noise, seed)
    owner = consecutive_captions((images, images * 5))
    return evaluate(Embeddings(pictures, captions), owner, Protocol("all", folds=folds))


@pytest.mark.specification
@pytest.mark.parametrize("folds", [1, 4])
def test_a_better_system_is_told_apart_and_an_equal_one_is_not(folds: int) -> None:
    base, better = system(1.5, 0, folds=folds), system(1.0, 0, folds=folds)
    comparison = compare(base, better, samples=500)["", "RSUM"]
    assert comparison.difference.value == pytest.approx(better.rsum - base.rsum)
    assert comparison.difference.low > 0
    assert comparison.p == comparison.resolution == pytest.approx(1 / 501)
    back = compare(better, base, samples=500)["", "RSUM"]
    assert back.difference.value == pytest.approx(-comparison.difference.value)
    assert {each.p for each in compare(base, base, samples=100).values()} == {1.0}


@pytest.mark.slow
def test_p_is_uniform_where_systems_are_alike() -> None:
    chances = [
        compare(system(1.5, seed, 60), system(1.5, seed + 100, 60), 100)["", "RSUM"].p
        for seed in range(60)
    ]
    assert np.mean(np.array(chances) <= 0.2) == pytest.approx(0.2, abs=0.15)
    assert np.mean(chances) == pytest.approx(0.5, abs=0.12)


@pytest.mark.specification
def test_p_equals_the_share_of_all_swaps() -> None:
    """Three images that the second system alone finds: 2 of the 8 ways to swap them differ as
    much.
    """
    before, after = np.zeros((12, 12)), np.zeros((12, 12))
    np.fill_diagonal(before, [-1] * 3 + [1] * 9)
    np.fill_diagonal(after, 1)
    p = compare(evaluate(before, np.arange(12)), evaluate(after, np.arange(12)), samples=4000)[
        "t2i", "R@1"
    ].p
    assert p == pytest.approx(0.25, abs=0.03)


def test_rows_in_another_order_and_systems_exchanged_have_the_same_p_and_interval(
    rng: np.random.Generator,
) -> None:
    """Swaps are drawn for images, in whatever order they, their captions and their folds come."""
    images = rng.normal(size=(60, 8))
    captions = np.repeat(images, 5, 0)
    scores = [images @ (captions + 2 * rng.normal(size=captions.shape)).T for _ in range(2)]
    for folds, rows in ((1, rng.permutation(60)), (3, np.arange(60)[::-1])):
        columns = (5 * rows[:, None] + rng.permutation(5)).reshape(-1)
        owner, rules = np.arange(300) // 5, Protocol("all", folds=folds)
        before, after = (evaluate(each, owner, rules) for each in scores)
        others = [evaluate(each[rows][:, columns], owner, rules) for each in scores]
        first, again, back = compare(before, after), compare(*others), compare(after, before)
        assert len({each.p for each in first.values()}) > 4
        for name, each in first.items():
            difference = each.difference
            ends = [difference.low, difference.high]
            assert again[name].p == back[name].p == each.p, name
            assert again[name].difference.low == pytest.approx(ends[0], abs=1e-9)
            assert again[name].difference.high == pytest.approx(ends[1], abs=1e-9)
            assert back[name].difference.low == pytest.approx(-ends[1], abs=1e-9)
            assert back[name].difference.high == pytest.approx(-ends[0], abs=1e-9)


def test_p_and_interval_are_those_of_all_swaps(rng: np.random.Generator) -> None:
    """Of twelve images in two folds, of unlike numbers of queries, all 4,096 ways to swap them."""
    queries = rng.integers(1, 6, (12, 2))
    hits = rng.integers(-np.repeat(queries, 3, 1), np.repeat(queries, 3, 1) + 1).astype(float)
    folds = [FoldHits(hits[:5], queries[:5]), FoldHits(hits[5:], queries[5:])]
    low, high, p = difference_of_runs(folds, 40_000, 9 * MOST, 0.8, 0)
    signs = np.array([*product([1, -1], repeat=12)])

    def of_all(common: float) -> np.ndarray:
        """The p of each statistic if `common` is subtracted from every query's result."""
        recalls = []
        for fold, own in zip(folds, (signs[:, :5], signs[:, 5:]), strict=True):
            asked = np.repeat(fold.queries, 3, 1)
            recalls.append(own @ (100 * fold.hits - common * asked) / asked.sum(0))
        six = np.mean(recalls, axis=0)
        drawn = np.abs(np.hstack([six, six.sum(1, keepdims=True)]))
        return np.asarray((drawn >= drawn[0] - 1e-9).mean(0))

    assert p == pytest.approx(of_all(0), abs=0.012)
    for at in range(7):
        # A difference of the sum is one of six recalls.
        scale = 6 if at == 6 else 1
        for end, outwards in ((low[at], -1e-6), (high[at], 1e-6)):
            assert of_all((end - outwards) / scale)[at] > 0.2 - 0.012
            assert of_all((end + outwards) / scale)[at] < 0.2 + 0.012


@pytest.mark.parametrize("folds", [1, 3])
def test_p_of_two_systems_depends_on_neither_the_others_nor_the_order_of_rows(
    folds: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor on whether swaps are kept for the next pair."""
    before, after = [], []
    hard = rng.normal(size=(60, 1, 1))
    for _ in range(4):
        ranked = hard + rng.normal(size=(60, 6, 5)) > 0
        every = FoldHits(ranked.sum(2).astype(float), np.full((60, 2), 5))
        parts = np.split(np.arange(60), folds)
        before.append([[FoldHits(every.hits[rows], every.queries[rows]) for rows in parts]])
        parts = np.split(np.arange(60)[::-1], folds)
        after.append([[FoldHits(every.hits[rows], every.queries[rows]) for rows in parts]])

    def p_of_pairs(systems: Sequence[Hits]) -> list[list[float]]:
        pairs = ComparedPairs.of([*combinations(systems, 2)], 300, 0)
        return [[each.p for each in of_pair.values()] for of_pair in pairs.tests]

    p = p_of_pairs(before)
    assert p_of_pairs(after) == p
    assert sorted(p_of_pairs(before[::-1])) == sorted(p)
    assert p_of_pairs(before[1:3]) == [p[3]]
    monkeypatch.setattr(significance, "MOST_KEPT", 0)
    assert p_of_pairs(before) == p
    assert len(np.unique(p)) > 20


@pytest.mark.parametrize("over_seeds", [False, True])
def test_corrected_p_of_every_two_are_a_family_of_each_statistic(over_seeds: bool) -> None:
    """By Holm of their own p where two systems with several seeds are tested over seeds."""
    rng = np.random.default_rng(0)
    systems = []
    for better, seeds in ((0.0, 1), (0.0, 2), (0.6, 2)):
        runs = []
        for _ in range(seeds):
            found = rng.normal(size=(50, 6, 5)) + better > 0
            runs.append([FoldHits(found.sum(2).astype(float), np.full((50, 2), 5))])
        systems.append(runs)
    found = EveryTwo.of(systems, 2000, over_seeds=over_seeds)
    places = [*combinations(range(3), 2)]
    pairs = [(systems[first], systems[second]) for first, second in places]
    tests = ComparedPairs.of(pairs, 2000, 0, over_seeds).tests
    assert found.places == places
    for name in STATISTICS:
        own = [of_pair[name].p for of_pair in tests]
        of_statistic = [each.p for each in found.corrected(name).corrected]
        if over_seeds:
            assert of_statistic == holm(own)
        else:
            assert max(np.subtract(of_statistic, holm(own))) < 0.05
            assert max(np.subtract(own, of_statistic)) < 0.05
    of_sum = dict(zip(places, of_statistic, strict=True))
    assert of_sum[0, 2] < 0.05 < of_sum[0, 1]


def test_a_direction_without_queries_does_not_differ() -> None:
    """Lists may rank one direction alone."""
    hits = np.zeros((30, 6))
    hits[:9, 3:] = 1
    folds = [FoldHits(hits, np.tile([0, 1], (30, 1)))]
    low, high, p = difference_of_runs(folds, 199, MOST, 0.95, 0)
    assert (p[:3] == 1).all()
    assert (low[:3] <= 0).all()
    assert (high[:3] >= 0).all()
    assert (p[3:] < 0.02).all()


@pytest.mark.slow
def test_a_difference_in_folds_is_as_certain_as_all_their_images() -> None:
    """And its interval is drawn with the seed that is given."""
    number = np.arange(200)
    runs = [
        [
            evaluate(
                np.where(np.eye(200) == 1, right[:, None], 0.5),
                number,
                Protocol("all", folds=folds),
            )
        ]
        for right in (number % 3 > 0, number % 4 > 0)
        for folds in (1, 4)
    ]
    whole, folds, again = (
        contrast.together([[pair]], 500, seed)[0][0]["t2i"]["R@1"]["interval"]
        for *pair, seed in ((runs[0], runs[2], 0), (runs[1], runs[3], 0), (runs[1], runs[3], 1))
    )
    assert folds[1] - folds[0] == pytest.approx(whole[1] - whole[0], rel=0.3)
    assert folds != again


@pytest.mark.slow
def test_zero_is_outside_the_interval_where_p_is_below_its_level_and_nowhere_else(
    rng: np.random.Generator,
) -> None:
    """One test decides both, also with few images, other numbers of captions, and differences near
    the border.
    """
    decided = set()
    for images in (4, 12, 40):
        owner = np.sort(rng.integers(0, images, 3 * images))
        for noise in rng.uniform(0, 3, 20):
            before, after = (
                (np.arange(images)[:, None] == owner)
                + noise * rng.normal(size=(images, len(owner)))
                for noise in (2.0, noise)
            )
            for each in compare(
                evaluate(before, owner), evaluate(after, owner), samples=199
            ).values():
                low, high = each.difference.low, each.difference.high
                assert low <= each.difference.value <= high
                assert (each.p < 0.05) == (low > 0 or high < 0)
                decided.add(each.p < 0.05)
    assert decided == {True, False}


def test_an_interval_that_ends_at_zero_ends_there_exactly() -> None:
    """Sums of recalls miss 0 by a rounding: an end of 1e-14 would leave out 0 where p is above the
    level.
    """
    for seed in (213, 243, 308):
        rng = np.random.default_rng(seed)
        hits = np.concatenate(
            [rng.integers(-1, 2, (12, 3)), rng.integers(-3, 5, (12, 3))], axis=1
        ).astype(float)
        low, high, *_ = difference_of_runs(
            [FoldHits(hits, np.tile([1, 5], (12, 1)))], 199, MOST, 0.95, 0
        )
        ends = np.concatenate([low, high])
        assert np.all((ends == 0) | (np.abs(ends) > 1e-9))


@pytest.mark.slow
def test_a_difference_is_in_the_interval_in_ninety_five_of_a_hundred_cases(
    rng: np.random.Generator,
) -> None:
    """Of 500 test sets whose images' differences of one hit have the mean 0.2."""

    def held() -> bool:
        hits = np.repeat(rng.choice([-1.0, 0.0, 1.0], (60, 1), p=[0.2, 0.4, 0.4]), 6, axis=1)
        low, high, *_ = difference_of_runs(
            [FoldHits(hits, np.ones((60, 2), np.int64))], 199, MOST, 0.95, 0
        )
        return bool(low[0] <= 20 <= high[0])

    assert np.mean([held() for _ in range(500)]) == pytest.approx(0.95, abs=0.03)


@pytest.mark.specification
def test_only_like_systems_are_compared() -> None:
    base = system(1.5, 0)
    with pytest.raises(InputError, match="same images and captions"):
        compare(base, system(1.5, 0, images=100))
    with pytest.raises(InputError, match="same images and captions"):
        compare([base, system(1.5, 0, images=100)], base)
    scores, owner = np.eye(4), np.arange(4)
    with pytest.raises(InputError, match="same images and captions"):
        compare(evaluate(scores, owner), evaluate(scores, owner[::-1]))
    with pytest.raises(InputError, match="ties expected and optimistic"):
        compare(evaluate(scores, owner), evaluate(scores, owner, ties="optimistic"))
    with pytest.raises(InputError, match="samples from 1 up"):
        compare(base, base, samples=0)
    with pytest.raises(InputError, match="confidence between 0 and 1"):
        compare(base, base, confidence=1.0)


@pytest.mark.specification
def test_a_difference_that_seeds_explain_is_none() -> None:
    """Runs of one recipe that differ by far more than their images do: over images alone p is
    0.001.
    """
    noises = (1.3, 1.6, 1.9), (1.1, 1.3, 1.7)
    groups = [
        [system(noise, seed + 10 * side) for seed, noise in enumerate(group)]
        for side, group in enumerate(noises)
    ]
    found = compare(*groups)["", "RSUM"]
    runs = [[run.rsum for run in group] for group in groups]
    assert found.over_seeds
    assert found.difference.low < 0 < found.difference.high
    assert found.difference.value == pytest.approx(np.mean(runs[1]) - np.mean(runs[0]))
    # Beside such a spread images count for little: it is Welch's test of the six sums.
    assert found.p == pytest.approx(stats.ttest_ind(*runs, equal_var=False).pvalue, abs=0.02)
    assert found.p > 0.4


def test_images_that_are_hard_for_both_recipes_do_not_widen_the_interval(
    rng: np.random.Generator,
) -> None:
    """Paired by image nothing varies but the seeds: it is Welch's test of their sums."""
    hard = rng.normal(size=(3, 40, 1))[:1].repeat(3, 0)
    values = np.array([[50.0], [53.0], [51.0]]), np.array([[55.0], [54.0], [57.0]])
    low, high, p = difference_over_seeds(
        *(Runs(each, 30 * (hard - hard.mean())) for each in values), np.ones(1), 0.95
    )
    welch = stats.ttest_ind(values[1], values[0], equal_var=False)
    assert p == pytest.approx(welch.pvalue, abs=1e-3)
    assert (low[0], high[0]) == pytest.approx(
        [end[0] for end in welch.confidence_interval()], abs=0.01
    )


def test_seeds_that_agree_wholly_are_not_certain_beyond_the_images() -> None:
    """Stores copied under other seeds' names: nothing varies over seeds, and of equal systems
    nothing over images.
    """
    one, other = system(1.5, 0), system(1.4, 5)
    same = compare([one, one], [one, one])["", "RSUM"]
    assert same.difference.low < same.difference.value == 0 < same.difference.high
    assert same.p == 1
    single, copied = (
        compare(one, other)["", "RSUM"],
        compare([one, one], [other, other])["", "RSUM"],
    )
    # One is of the randomisation test, the other drawn over images: alike, not equal.
    assert copied.difference.high == pytest.approx(single.difference.high, rel=0.15)
    assert copied.p == pytest.approx(single.p, abs=0.05)


def test_seeds_of_equal_recalls_on_other_images_are_not_certain() -> None:
    """Their means do not vary over seeds, and all that varies over images seems to be the
    seeds'.
    """

    def run(right: list[int]) -> Metrics:
        scores = np.zeros((8, 8))
        scores[np.arange(8), np.arange(8)] = np.isin(np.arange(8), right) * 2 - 1
        return evaluate(scores, np.arange(8))

    found = compare([run([0, 1, 2, 3]), run([4, 5, 6, 7])], [run([0, 1, 4, 5]), run([2, 3, 6, 7])])
    for each in found.values():
        assert each.difference.low <= 0 <= each.difference.high
        assert each.p == 1


def test_a_difference_over_seeds_is_of_the_unit_of_its_numbers(rng: np.random.Generator) -> None:
    """RSUM is at most 600, a recall 100: six times the numbers have six times the interval."""
    for noise in (0.0, 1.0):  # without noise what images that were not seen may do is all
        sides = [
            Runs(rng.random((3, 2)), noise * rng.standard_normal((3, 20, 2))) for _ in range(2)
        ]
        sixfold = [Runs(6 * side.values, 6 * side.contributions) for side in sides]
        low, high, p = difference_over_seeds(*sides, np.array([1.0, 1.0]), 0.95)
        found = difference_over_seeds(*sixfold, np.array([6.0, 6.0]), 0.95)
        np.testing.assert_allclose(found, [6 * low, 6 * high, p])


def test_the_variance_over_images_is_none_where_that_over_seeds_has_all_of_it() -> None:
    """Whichever recipe's seeds differ. Images that were not seen hold a tenth of the largest
    value's square.
    """
    values = np.array([[0.4], [0.6]])
    apart = 0.3 * np.array([[1.0], [-1.0]] * 4)
    agreeing = Runs(np.full((2, 1), 0.5), np.zeros((2, 8, 1)))
    differing = Runs(values, np.stack([apart, -apart]))
    most = np.ones(1)
    over_seeds = values.var(ddof=1) / 2
    assert variances(agreeing, differing, most).ravel() == pytest.approx([0, 0, over_seeds])
    assert variances(differing, agreeing, most).ravel() == pytest.approx([0, over_seeds, 0])
    unseen = variances(agreeing, agreeing, 100 * most).ravel()
    assert unseen == pytest.approx([0.1 * 100**2 / (8 * 7), 0, 0])


def test_one_run_of_a_side_leaves_seeds_out() -> None:
    runs = [system(1.5, seed) for seed in range(2)]
    assert not compare(runs, system(1.4, 5), samples=50)["", "RSUM"].over_seeds
    assert not compare(system(1.4, 5), runs, samples=50)["", "RSUM"].over_seeds


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("spread", [0, 0.5, 1, 1.5, 2.5])
def test_equal_recipes_differ_in_five_of_a_hundred_cases(
    count: int, spread: float, rng: np.random.Generator
) -> None:
    """Seeds' standard deviation in standard errors of the image sampling of a difference; `python
    -m benchmarks.rejections` has more of them. 40 images are drawn for each of 1,500 test sets.
    """
    sets, images = 1500, 40
    most = np.ones(sets)
    sides = []
    for _ in range(2):
        image, own = rng.standard_normal((images, sets)), rng.standard_normal((count, images, sets))
        sides.append((image + 0.7 * own) * np.sqrt(images / 2) / np.sqrt(1 + 0.49 / count))
    runs = []
    for every in sides:
        values = every.mean(1) + spread * rng.standard_normal((count, sets))
        runs.append(Runs(values, every - every.mean(1, keepdims=True)))
    assert np.mean(difference_over_seeds(*runs, most, 0.95)[2] < 0.05) == pytest.approx(
        0.05, abs=0.02
    )


def test_spread_over_seeds() -> None:
    runs = [system(1.5, seed) for seed in range(3)]
    assert deviations(runs)["", "RSUM"] == pytest.approx(np.std([run.rsum for run in runs], ddof=1))
    with pytest.raises(InputError, match="at least two runs"):
        deviations(runs[:1])
    for other in (
        system(1.5, 0, images=100),
        replace(runs[1], protocol="other"),
        replace(runs[1], ties="optimistic"),
        system(1.5, 1, folds=4),  # by a protocol of the same name
    ):
        with pytest.raises(InputError, match="runs differ"):
            deviations([runs[0], other])


def test_protocols_of_one_name_and_other_folds_are_not_compared() -> None:
    with pytest.raises(InputError, match="measured in 1 and in 4 folds"):
        compare(system(1.5, 0), system(1.5, 1, folds=4))
