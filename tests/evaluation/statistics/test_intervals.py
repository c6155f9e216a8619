"""Intervals of recalls and RSUM: their width, their reach near 0 and 100 %, how often they hold the
truth.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sorting import noisy_pairs

from pipeline.foundation.evaluation.metrics import STATISTICS, Metrics, evaluate
from pipeline.foundation.evaluation.retrieval import Embeddings, Protocol, consecutive_captions
from pipeline.foundation.evaluation.retrieval.lists import Listed, Lists
from pipeline.foundation.evaluation.statistics import ImageHits, interval, intervals, pack
from pipeline.foundation.evaluation.statistics.intervals import of_mean
from pipeline.foundation.evaluation.statistics.wilson import UNSEEN, wilson
from pipeline.foundation.parts.errors import InputError

CAPTIONS = 5


def system(noise: float, images: int = 200, folds: int = 1) -> Metrics:
    pictures, captions = noisy_pairs(images, CAPTIONS, noise, 0)
    owner = consecutive_captions((images, images * CAPTIONS))
    return evaluate(Embeddings(pictures, captions), owner, Protocol("all", folds=folds))


def hits_of(right: np.ndarray, captions: int = 1) -> Metrics:
    """Images whose captions are first, or last, in each ranking."""
    scores = np.full((len(right), len(right)), 0.5)
    np.fill_diagonal(scores, right)
    return evaluate(scores.repeat(captions, 1), np.arange(len(right)).repeat(captions))


@pytest.mark.parametrize("folds", [1, 4])
def test_intervals_hold_the_recalls_and_their_sum(folds: int) -> None:
    metrics = system(1.5, folds=folds)
    found, numbers = intervals(metrics), metrics.as_dict()
    assert tuple(found) == STATISTICS
    for name in STATISTICS[:-1]:
        assert found[name].value == pytest.approx(numbers[name.direction][name.metric])
    assert found["", "RSUM"].value == pytest.approx(metrics.rsum)
    assert all(each.low < each.value < each.high for each in found.values())
    wide, narrow = (intervals(metrics, level)["", "RSUM"] for level in (0.99, 0.5))
    assert (
        wide.low
        < found["", "RSUM"].low
        < narrow.low
        < narrow.high
        < found["", "RSUM"].high
        < wide.high
    )
    with pytest.raises(InputError, match="confidence between 0 and 1"):
        intervals(metrics, 1.0)


def test_a_direction_without_lists_has_no_interval() -> None:
    """Its recalls are not known, and neither is RSUM."""
    image, caption = np.indices((9, 9)).reshape(2, -1)
    listed = Listed(image, caption, (image != caption) - 0.5 * (image < 4) * (image == caption))
    for way in ("i2t", "t2i"):
        metrics = evaluate(Lists((9, 9), {way: listed}, "run"), np.arange(9))
        found = intervals(metrics)
        assert [str(name) for name in found] == [f"{way} R@{k}" for k in (1, 5, 10)]
        ends = interval(metrics)
        assert ends["RSUM"] is None
        other = "t2i" if way == "i2t" else "i2t"
        assert set(ends[other].values()) == {None}
        assert ends[way]["R@10"] == [found[way, "R@10"].low, found[way, "R@10"].high]


def test_folds_count_every_image_once() -> None:
    """Four folds of 50 images are as certain as their 200 images."""
    whole, folds = hits_of(np.arange(200) % 4 > 0), np.arange(200) % 4 > 0
    scores = np.where(np.eye(200) == 1, folds[:, None], 0.5)
    parts = evaluate(scores, np.arange(200), Protocol("all", folds=4))
    assert intervals(parts)["t2i", "R@1"].low == pytest.approx(
        intervals(whole)["t2i", "R@1"].low, abs=0.05
    )


def test_a_fold_in_which_few_images_ask_counts_as_much_as_the_others() -> None:
    """The mean's variance is that of both folds' recalls, each with its own number of images."""
    right, asking = np.arange(400) % 2 > 0, np.flatnonzero(np.arange(400) < 240)
    scores = np.where(np.eye(400) == 1, right[:, None], 0.5)[:, asking]
    whole = evaluate(scores, asking, Protocol("all", folds=2))
    halves = [
        (found.high - found.low) / 2
        for found in (intervals(fold)["t2i", "R@1"] for fold in whole.folds)
    ]
    found = intervals(whole)["t2i", "R@1"]
    assert halves[1] > 2 * halves[0]
    assert (found.high - found.low) / 2 == pytest.approx(np.hypot(*halves) / 2, rel=0.05)


@pytest.mark.specification
def test_intervals_have_the_width_of_the_binomial() -> None:
    """One caption an image makes the queries independent: the error of a recall is that of a
    proportion.
    """
    found = intervals(hits_of(np.arange(1000) < 700))["t2i", "R@1"]
    error = 100 * np.sqrt(0.7 * 0.3 / 1000)
    assert found.value == 70
    assert (found.low, found.high) == pytest.approx((70 - 1.96 * error, 70 + 1.96 * error), abs=0.1)


def packed(metrics: Metrics, first_id: int = 0) -> ImageHits:
    ids = np.arange(first_id, first_id + metrics.ranks[0].shape[0])
    return ImageHits(pack(metrics, ids, ids))


def test_a_mean_over_seeds_has_the_interval_of_each_images_mean() -> None:
    """Of 1,000 images, by how many are right for none, one and both of two seeds."""
    images = np.arange(1000)
    first = hits_of(images < 500)
    for second, error in (
        (first, np.sqrt(0.25 / 1000)),  # two equal seeds tell no more than one
        (hits_of(images % 500 < 250), np.sqrt(0.125 / 1000)),
        (hits_of(images >= 500), 0.0),  # each image is right for one of both
    ):
        found = of_mean([packed(first), packed(second)])["t2i", "R@1"]
        assert found.value == pytest.approx(50)
        ends = (50 - 196 * error, 50 + 196 * error)
        assert (found.low, found.high) == pytest.approx(ends, abs=0.15)
    assert of_mean([packed(first), packed(first, 1)]) == {}


@pytest.mark.specification
def test_captions_of_one_image_count_together() -> None:
    """Five equal captions tell no more than one: the interval must not shrink by the square root of
    five.
    """
    one, five = (
        intervals(hits_of(np.arange(200) < 140, captions))["t2i", "R@1"] for captions in (1, 5)
    )
    assert (five.low, five.high) == pytest.approx((one.low, one.high))


@pytest.mark.parametrize("captions", [1, 5])
def test_all_right_and_all_wrong_are_not_certain(captions: int) -> None:
    """1,000 images without a miss: the rule of three puts the true value above 99.7; so do we, a
    little wider.
    """
    best, worst = (intervals(hits_of(np.full(1000, right), captions)) for right in (True, False))
    for name in STATISTICS[:-1]:
        assert best[name].high == 100
        assert 99.5 < best[name].low < 99.7
    assert 597 < best["", "RSUM"].low < best["", "RSUM"].high == 600
    assert worst["t2i", "R@1"].low == 0
    assert 0.3 < worst["t2i", "R@1"].high < 0.5


@pytest.mark.specification
@pytest.mark.parametrize("together", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("recall", [0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.995, 0.999])
def test_intervals_hold_the_truth_in_ninety_five_of_a_hundred_cases(
    recall: float, together: float, rng: np.random.Generator
) -> None:
    """93 to 97 %, and half a point for 4,000 drawn test sets of 1,000 images with five captions,
    hits of one image correlated; `python -m benchmarks.coverage` has more.
    """
    sets, images = 4000, 1000
    others = 1 / together - 1
    chance = stats.betabinom.pmf(
        np.arange(CAPTIONS + 1), CAPTIONS, recall * others, (1 - recall) * others
    )
    # How many images have 0 ... 5 hits is all that an interval depends on.
    counts = rng.multinomial(images, chance, size=sets)
    values = np.arange(CAPTIONS + 1) / CAPTIONS
    share = counts @ values / images
    low, high = wilson(share, (counts * (values - share[:, None]) ** 2).sum(1), images, 0.95)
    assert np.mean((low <= recall) & (recall <= high)) == pytest.approx(0.95, abs=0.025)


@pytest.mark.parametrize("images", [2, 4, 30])
def test_few_images_have_students_quantile_of_one_freedom_less(images: int) -> None:
    """Half of the images hit: the ends are where the share is just t standard errors off, a little
    more for UNSEEN.
    """
    (low,), (high,) = wilson(np.array([0.5]), np.array([images * 0.25]), images, 0.95)
    variance = images / (images - 1) * 0.25 / images  # of a mean, as of a sample
    t = (0.5 - low) / np.sqrt(low * (1 - low) * variance / 0.25)
    assert high == pytest.approx(1 - low)
    assert t == pytest.approx(stats.t.ppf(0.975, images - 1), rel=0.5 * UNSEEN)
