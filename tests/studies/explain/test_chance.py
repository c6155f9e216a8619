"""Whether another sample of images, or another seed, may be the reason for a published number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.metrics.kinds import Hit, MedianRank
from pipeline.foundation.evaluation.retrieval import Protocol
from pipeline.foundation.evaluation.statistics import Interval, intervals
from pipeline.foundation.evaluation.statistics.wilson import of_mean_share
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.explain import explain, explained
from pipeline.judge.explain.explained import Sampled, Variant
from pipeline.judge.explain.printed import Printed

IMAGES = 120
NUMBERS = 5
CALLS = 250


def drawn(seed: int = 0) -> np.ndarray:
    """Scores of 120 images and 600 captions near theirs."""
    draw = np.random.default_rng(seed)
    pictures = draw.normal(size=(IMAGES, 24))
    scores: np.ndarray = pictures @ (np.repeat(pictures, 5, 0) + 3 * draw.normal(size=(600, 24))).T
    return scores


def of_seeds(draw: np.random.Generator, seeds: int) -> Iterator[Sampled]:
    """Five numbers of a model by several seeds, and what one more seed of it prints."""
    for mean in range(50, 50 + NUMBERS):
        *known, published = draw.normal(mean, 1, seeds + 1).tolist()
        value = float(np.mean(known))
        of_images = Interval(value, value - 0.1, value + 0.1, 0.95)
        printed = Printed(Hit(1), "t2i", Decimal(f"{published:.1f}"))
        yield Sampled(printed, of_images, tuple(known), 1000, NUMBERS)


def of_images(draw: np.random.Generator, images: int) -> Iterator[Sampled]:
    """Five numbers of a model on some images, and what it has on as many others."""
    for share in (0.03, 0.2, 0.5, 0.8, 0.97):
        hits, others = draw.random((2, images)) < share
        ends = of_mean_share(hits.mean(), hits - hits.mean(), 0.95)
        low, high = (100 * end for end in ends)
        printed = Printed(Hit(1), "t2i", Decimal(f"{100 * others.mean():.1f}"))
        measured = Interval(100 * hits.mean(), low, high, 0.95)
        yield Sampled(printed, measured, (measured.value,), images, NUMBERS)


def test_chance_is_excluded_wrongly_in_one_of_twenty_calls_at_most() -> None:
    """However many numbers a call has, and however few seeds; the intervals are no wider than they
    must be where there are many seeds.
    """
    for draws, size in (
        (of_seeds, 2),
        (of_seeds, 3),
        (of_seeds, 10),
        (of_images, 100),
        (of_images, 1000),
    ):
        draw = np.random.default_rng(size)
        wrong = 0
        for _ in range(CALLS):
            wrong += not all(sampled.is_within for sampled in draws(draw, size))
        # Three standard errors of 5 %
        assert wrong / CALLS <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / CALLS), (draws, size)
        assert wrong / CALLS >= 0.01, (draws, size)


def test_a_median_may_be_another_rank_where_all_seeds_have_one() -> None:
    for published, is_within in (("2.0", True), ("3.0", False)):
        printed = Printed(MedianRank(), "t2i", Decimal(published))
        sampled = Sampled(printed, Interval(1, 1, 1, 0.95), (1.0, 1.0, 1.0), 1000, 1)
        assert sampled.is_within == is_within
        assert sampled.ends[0] == 1


def test_it_says_first_whether_chance_alone_may_be_the_reason() -> None:
    """The interval is of images drawn again, each with its captions; other images differ by two
    such draws.
    """
    scores = drawn()
    first = np.array([row.argmax() // 5 == image for image, row in enumerate(scores)])
    draw = np.random.default_rng(0)
    samples = 100 * first[draw.integers(0, IMAGES, (2, 4000, IMAGES))].mean(2)
    low, high = np.quantile(samples[0], [0.025, 0.975])
    least, most = 100 * first.mean() + np.quantile(samples[0] - samples[1], [0.025, 0.975])
    measured = 100 * first.mean()
    scope = "for another sample of images"
    within = (
        f"Chance may be the reason: the published number lies within the 95 % interval {scope}."
    )
    far = f"Too far off {scope}: i2t R@1 "
    seeds = "One seed does not show how far off another may be: give several, a.npy,b.npy."
    for number, first_line, sentence in (
        (measured, "The published number is the one measured.", ""),
        ((least + measured) / 2, within, f"Within the 95 % interval {scope}: i2t R@1 ["),
        (least - 4, "No reason found among ", far),
        (most + 4, "No reason found among ", far),
    ):
        found = explain(scores, f"i2t_R@1={number:.1f}", most=1)
        (sampled,) = found.sampled
        assert sampled.interval.value == pytest.approx(measured)
        assert sampled.interval.low == pytest.approx(low, abs=1.5)
        assert sampled.interval.high == pytest.approx(high, abs=1.5)
        assert list(map(float, sampled.ends)) == pytest.approx([least, most], abs=2)
        said = " ".join(str(found).split())
        assert said.startswith(first_line)
        assert sentence in said
        assert said.count("of images: i2t") == bool(sentence)
        assert said.count(f", measured {measured:.1f} [") == (sentence == far)
        # One matrix says nothing of other seeds.
        assert said.count(seeds) == (sentence == far)


def test_the_first_line_is_what_is_likeliest() -> None:
    """Where variants match many random numbers nearby, chance is named before the variant that
    gives the numbers; several differences are then no certain reason either.
    """
    one = ("a difference",)
    two = ("a difference", "another")
    near = explain(drawn()[:40, :200], "i2t_R@1=50,t2i_R@1=25", most=1)
    far = explain(drawn()[:40, :200], "i2t_R@1=90,t2i_R@1=80", most=1)
    chance = "Chance may be the reason: all published numbers lie within"
    also = "Also possible: a difference; another gives both numbers (the only one of 1 variant)."
    for of_numbers, differences, by_chance, first_line, says_also in (
        (near, two, 0.72, chance, True),
        (near, one, 0.72, chance, False),
        (near, two, 0.04, "Reason found: a difference; another gives both", False),
        (near, one, 0.04, "Reason found: a difference gives both", False),
        (far, two, 0.11, "Possible reason found: a difference; another gives both", False),
        (far, one, 0.11, "Reason found: a difference gives both", False),
        (far, two, 0.04, "Reason found: a difference; another gives both", False),
    ):
        shares = [0.0] * len(differences) + [by_chance]
        numbers = tuple(printed.number for printed in of_numbers.published)
        variants = (*of_numbers.references, Variant(differences, numbers, Decimal(0), 2, ""))
        found = replace(of_numbers, variants=variants, by_chance=tuple(shares))
        case = (numbers, differences, by_chance)
        for said in (str(found), explained.to_markdown(found)):
            said = " ".join(said.split())
            assert said.startswith(first_line), case
            assert (also in said) == says_also, case
            assert ("Also possible: a difference" in said) == (first_line == chance), case


def test_two_seeds_and_few_images_cannot_tell() -> None:
    few = drawn()[:4, :20]
    seeds = [drawn(seed)[:40, :200] for seed in range(3)]
    for scores, unable in (
        (few, ", but 4 images cannot tell"),
        (few[:1, :5], ", but 1 image cannot tell"),
        (seeds[:2], ", but two seeds cannot tell"),
        ([few, few + 1], ", but two seeds and 4 images cannot tell"),
        (seeds, ""),
        (seeds[0], ""),
    ):
        said = str(explain(scores, "t2i_R@1=32.1", most=1))
        assert " ".join(said.split()).startswith(f"Chance may be the reason{unable}: the published")
    # Candidates without a query of theirs tell nothing.
    owner = np.where(np.arange(200) < 20, np.arange(200) // 5, -1)
    said = str(explain(seeds[0], "t2i_R@1=32.1", caption_image=owner, most=1))
    assert said.startswith("Chance may be the reason, but 4 images cannot tell")


def test_several_numbers_have_joint_intervals_and_each_is_named_once() -> None:
    """RSUM is of both directions, so it is there for each that R@1 may be of."""
    scores = drawn()
    measured = evaluate(scores, np.repeat(np.arange(IMAGES), 5))
    alone = explain(scores, "RSUM=300", most=1).sampled[0].ends
    found = explain(scores, f"R@1={measured['i2t', 'R@1'] + 0.5:.1f},RSUM=599", most=1)
    assert [sampled.together for sampled in found.sampled] == [2, 2, 2, 2]
    of_two = found.sampled[1].ends
    assert of_two[0] < alone[0]
    assert of_two[1] > alone[1]
    said = " ".join(str(found).split())
    assert said.count("RSUM 599, measured") == 1
    assert "Within the joint 95 % intervals for another sample of images: i2t R@1 [" in said


def test_seeds_are_a_list_from_python() -> None:
    runs = [drawn(seed)[:40, :200] for seed in range(3)]
    recalls = [100 * (run.argmax(0) == np.arange(200) // 5).mean() for run in runs]
    found = explain(runs, f"t2i_R@1={recalls[1]:.2f}", most=1)
    assert found.sampled[0].seeds == pytest.approx(recalls)
    assert found.references[0].numbers == (Decimal(f"{np.mean(recalls):.2f}"),)
    assert ("the second seed alone",) in [each.differences for each in found.reproducing]
    far = " ".join(str(explain(runs, "t2i_R@1=99.9", most=1)).split())
    assert "Too far off for another seed and sample of images: t2i R@1 99.9, measured" in far
    assert "From 3 seeds little is known of another one" in far
    for wrong, said in (
        ([], "received an empty list"),
        ([runs[0], runs[1][:20, :100]], "one shape"),
    ):
        with pytest.raises(InputError, match=said):
            explain(wrong, "t2i_R@1=50")


def test_the_intervals_are_those_of_evaluate() -> None:
    scores = drawn()
    folds = Protocol("5fold", folds=5)
    numbers = evaluate(scores, np.repeat(np.arange(IMAGES), 5), folds)
    asked = ",".join(f"{way}_R@{k}=50.0" for way in ("i2t", "t2i") for k in (1, 5, 10))
    found = explain(scores, f"{asked},RSUM=300.0", protocol=folds, most=1)
    for sampled, expected in zip(found.sampled, intervals(numbers).values(), strict=True):
        assert sampled.interval.low == pytest.approx(expected.low)
        assert sampled.interval.high == pytest.approx(expected.high)
