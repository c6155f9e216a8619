"""Intervals, paired tests and spreads on systems whose certainty is known."""

from __future__ import annotations

import numpy as np
import pytest
from sorting import noisy_pairs

from pipeline.errors import InputError
from pipeline.retrieval import (
    STATISTICS,
    Embeddings,
    Metrics,
    Protocol,
    bootstrap,
    compare,
    consecutive_captions,
    evaluate,
    over_seeds,
)


def system(noise: float, seed: int, images: int = 200, folds: int = 1) -> Metrics:
    pictures, captions = noisy_pairs(images, 5, noise, seed)
    owner = consecutive_captions((images, images * 5))
    return evaluate(Embeddings(pictures, captions), owner, Protocol("all", folds=folds))


def test_statistics_are_the_recalls_and_their_sum() -> None:
    metrics = system(1.5, 0, folds=2)
    intervals = bootstrap(metrics, samples=50)
    assert tuple(intervals) == STATISTICS
    numbers = metrics.as_dict()
    for name in STATISTICS[:-1]:
        direction, recall = name.split("_")
        assert intervals[name].value == pytest.approx(numbers[direction][recall])
    assert intervals["rsum"].value == pytest.approx(metrics.rsum)
    assert all(each.low <= each.value <= each.high for each in intervals.values())


def test_intervals_have_the_width_of_the_binomial() -> None:
    """One caption an image makes the queries independent: the error of a recall is that of a proportion."""
    scores = np.full((1000, 1000), 0.5)
    right = np.arange(1000) < 700
    scores[np.arange(1000), np.arange(1000)] = np.where(right, 1, 0)
    interval = bootstrap(evaluate(scores, np.arange(1000)), samples=2000)["t2i_r1"]
    error = 100 * np.sqrt(0.7 * 0.3 / 1000)
    assert interval.value == 70
    assert interval.low == pytest.approx(70 - 1.96 * error, abs=0.3)
    assert interval.high == pytest.approx(70 + 1.96 * error, abs=0.3)


def test_captions_of_one_image_are_drawn_together() -> None:
    """Five equal captions tell no more than one: the interval must not shrink by the square root of five."""
    scores = np.where(np.eye(200) == 1, np.where(np.arange(200) < 140, 1.0, 0.0)[:, None], 0.5)
    one = bootstrap(evaluate(scores, np.arange(200)), samples=1000)["t2i_r1"]
    five = bootstrap(evaluate(scores.repeat(5, 1), consecutive_captions((200, 1000))), samples=1000)["t2i_r1"]
    assert five.high - five.low == pytest.approx(one.high - one.low, abs=0.5)


def test_the_seed_decides() -> None:
    metrics = system(1.5, 0)
    assert (
        bootstrap(metrics, 100, seed=1) == bootstrap(metrics, 100, seed=1) != bootstrap(metrics, 100, seed=2)
    )
    wide, narrow = (bootstrap(metrics, 200, confidence=level)["rsum"] for level in (0.99, 0.5))
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize("folds", [1, 4])
def test_a_better_system_is_told_apart_and_an_equal_one_is_not(folds: int) -> None:
    base, better = system(1.5, 0, folds=folds), system(1.0, 0, folds=folds)
    comparison = compare(base, better, samples=500)["rsum"]
    assert comparison.difference.value == pytest.approx(better.rsum - base.rsum)
    assert comparison.difference.low > 0
    assert comparison.p == pytest.approx(1 / 501)
    back = compare(better, base, samples=500)["rsum"]
    assert back.difference.value == pytest.approx(-comparison.difference.value)
    assert {each.p for each in compare(base, base, samples=100).values()} == {1.0}


def test_p_is_uniform_where_systems_are_alike() -> None:
    chances = [
        compare(system(1.5, seed, 60), system(1.5, seed + 100, 60), 100)["rsum"].p for seed in range(60)
    ]
    assert np.mean(np.array(chances) <= 0.2) == pytest.approx(0.2, abs=0.15)
    assert np.mean(chances) == pytest.approx(0.5, abs=0.12)


def test_p_equals_the_share_of_all_swaps() -> None:
    """Three images that the second system alone finds: 2 of the 8 ways to swap them differ as much."""
    before, after = np.zeros((12, 12)), np.zeros((12, 12))
    np.fill_diagonal(before, [-1] * 3 + [1] * 9)
    np.fill_diagonal(after, 1)
    p = compare(evaluate(before, np.arange(12)), evaluate(after, np.arange(12)), samples=4000)["t2i_r1"].p
    assert p == pytest.approx(0.25, abs=0.03)


def test_only_like_systems_are_compared() -> None:
    base = system(1.5, 0)
    with pytest.raises(InputError, match="same images and captions"):
        compare(base, system(1.5, 0, images=100))
    scores, owner = np.eye(4), np.arange(4)
    with pytest.raises(InputError, match="same images and captions"):
        compare(evaluate(scores, owner), evaluate(scores, owner[::-1]))
    with pytest.raises(InputError, match="ties expected and optimistic"):
        compare(evaluate(scores, owner), evaluate(scores, owner, ties="optimistic"))
    for samples, confidence in ((0, 0.95), (10, 1.0)):
        with pytest.raises(InputError, match="samples from 1 up"):
            bootstrap(base, samples, confidence)


def test_spread_over_seeds() -> None:
    runs = [system(1.5, seed) for seed in range(3)]
    spread = over_seeds(runs)["rsum"]
    sums = [run.rsum for run in runs]
    assert (spread.seeds, spread.smallest, spread.largest) == (3, min(sums), max(sums))
    assert spread.mean == pytest.approx(np.mean(sums))
    assert spread.deviation == pytest.approx(np.std(sums, ddof=1))
    with pytest.raises(InputError, match="at least two runs"):
        over_seeds(runs[:1])
    with pytest.raises(InputError, match="runs differ"):
        over_seeds([runs[0], system(1.5, 0, images=100)])
