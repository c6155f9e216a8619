"""Each language is a pool of its own, and the mean over languages has an interval over images."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import invented_facts
import numpy as np
import pandas as pd
import pytest

from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.metrics import Metrics, evaluate
from pipeline.foundation.evaluation.retrieval import protocol
from pipeline.foundation.evaluation.retrieval.relevance import Positives, Relevance
from pipeline.foundation.evaluation.statistics import interval, intervals
from pipeline.foundation.evaluation.statistics.intervals import divide, mean_recall
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Evaluate
from pipeline.judge.systems.scores import measured as measuring
from pipeline.judge.systems.scores.judged import with_languages
from pipeline.judge.systems.scores.system import System

SETTINGS = Evaluate(resamples=10, seed=0, block_megabytes=1.0)
EACH = {"cs": 1, "de": 5, "en": 5, "fr": 1}


def measured(
    pool: System, rules: str, ties: retrieval.Ties, settings: Evaluate, *progress: Any
) -> dict[str, Any]:
    """The numbers of each language."""
    numbers = measuring.measure(pool, rules, ties, settings, *progress).numbers
    return {key: numbers[key] for key in ("languages", "mean_of_languages") if key in numbers}


def by_language(pool: System) -> dict[str, tuple[System, Any, Any]]:
    """The view of each language, its images and its captions."""
    return {
        part.language: (part.system, part.images, part.captions) for part in pool.parts("all")[1:]
    }


def pool_of(rng: np.random.Generator, images: int = 40, noise: float = 1.0) -> System:
    """Captions in four languages, an image's together, as Multi30K has them; the noise grows from
    cs to fr.
    """
    languages = np.tile(np.repeat(list(EACH), list(EACH.values())), images)
    owner = np.repeat(np.arange(images), sum(EACH.values()))
    scores = rng.standard_normal((images, len(owner))).astype(np.float32) * noise
    scores *= np.array([1 + sorted(EACH).index(name) for name in languages], np.float32)
    scores[owner, np.arange(len(owner))] += 3
    return System.of("mine", retrieval.as_similarity(scores), owner, languages=languages)


def alone(pool: System, language: str) -> Metrics:
    """What is measured of a matrix that has only this language's captions."""
    assert pool.languages is not None
    columns = np.flatnonzero(pool.languages == language)
    return evaluate(
        np.asarray(pool.scores.block(slice(None), slice(None)))[:, columns],
        pool.caption_image[columns],
    )


@pytest.mark.specification
def test_a_language_has_the_numbers_of_a_matrix_with_its_captions_alone(
    rng: np.random.Generator,
) -> None:
    pool = pool_of(rng)
    found = measured(pool, "all", "expected", SETTINGS)
    assert list(found["languages"]) == sorted(EACH)
    for name, numbers in found["languages"].items():
        expected = alone(pool, name)
        assert {key: numbers[key] for key in expected.as_dict()} == expected.as_dict()
        assert numbers["mR"] == pytest.approx(expected.rsum / 6, abs=1e-12)
        assert numbers["interval"]["mR"] == [end / 6 for end in interval(expected)["RSUM"]]
        assert numbers["captions"] == 40 * EACH[name]
    means = [numbers["mR"] for numbers in found["languages"].values()]
    assert means == sorted(means, reverse=True)
    assert len(set(means)) == len(means)
    assert found["mean_of_languages"]["mR"] == pytest.approx(np.mean(means), abs=1e-12)
    low, high = found["mean_of_languages"]["interval"]["mR"]
    assert low < found["mean_of_languages"]["mR"] < high


def test_metrics_by_name_are_measured_in_each_language_and_progress_ends_at_its_sum(
    rng: np.random.Generator,
) -> None:
    pool, seen = pool_of(rng, 12), list[int]()
    settings = SETTINGS.model_copy(update={"metrics": ["nDCG@10"]})
    found = measured(pool, "all", "expected", settings, seen.append)
    assert all("nDCG@10" in numbers["t2i"] for numbers in found["languages"].values())
    assert seen == sorted(seen)
    assert seen[-1] == measuring.work(pool, "all", settings) == 2 * 5 * 12


def test_images_without_a_caption_in_a_language_are_not_in_its_pool() -> None:
    scores = np.array([[9, 1, 0], [8, 2, 5], [7, 3, 6]], np.float32)
    owner, languages = np.array([0, 1, 2]), np.array(["en", "en", "de"])
    pools = by_language(System.of("mine", scores, owner, languages=languages))
    assert {
        name: (images.tolist(), captions.tolist(), pool.caption_image.tolist())
        for name, (pool, images, captions) in pools.items()
    } == {"de": ([2], [2], [0]), "en": ([0, 1], [0, 1], [0, 1])}
    np.testing.assert_array_equal(
        pools["en"][0].scores.block(slice(None), slice(None)), [[9, 1], [8, 2]]
    )
    with pytest.raises(InputError, match=r"expected one for each of 3 captions, received \[2\]"):
        divide(owner, (3, 3), languages[:2])


def test_a_language_has_images_that_ask_or_answer_for_images_elsewhere() -> None:
    """The caption in en is of image 0, right for image 1 as a query and for image 2 as an
    answer.
    """
    asked = Positives.of_pairs(np.array([1, 3]), np.array([0, 1]), 4)
    answers = Positives.of_pairs(np.array([0, 1]), np.array([2, 3]), 2)
    truth = Relevance.of_directions(asked, answers, np.array([0, 3]))
    pools = divide(truth, (4, 2), np.array(["en", "de"]))
    assert pools["en"][0].tolist() == [0, 1, 2]


def test_a_language_in_which_one_direction_has_no_right_answer_is_not_measured() -> None:
    """In de no caption has a right image, in fr no image has a right caption."""
    right_captions = Positives.of_pairs(np.array([0, 1]), np.array([0, 1]), 3)
    right_images = Positives.of_pairs(np.array([0, 2]), np.array([0, 2]), 3)
    truth = Relevance.of_directions(right_captions, right_images, np.arange(3))
    assert list(divide(truth, (3, 3), np.array(["en", "de", "fr"]))) == ["en"]


def test_a_small_language_has_as_much_weight_in_the_mean_and_its_interval(
    rng: np.random.Generator,
) -> None:
    """Languages of different images: the variances add up, each divided by its own number of
    images.
    """
    sizes = {"de": 400, "en": 80}
    languages = np.repeat(list(sizes), list(sizes.values()))
    scores = rng.standard_normal((480, 480)).astype(np.float32) + 2.5 * np.eye(
        480, dtype=np.float32
    )
    pools = by_language(System.of("mine", scores, np.arange(480), languages=languages))
    measured = {
        name: (rows, evaluate(pool.scores, pool.caption_image))
        for name, (pool, rows, _) in pools.items()
    }
    halves = [
        (found.high - found.low) / 12
        for found in (intervals(each)["", "RSUM"] for _, each in measured.values())
    ]
    mean, low, high = mean_recall(measured)
    assert (high - low) / 2 == pytest.approx(np.hypot(*halves) / 2, rel=0.05)
    of_languages = [metrics.rsum / 6 for _, metrics in measured.values()]
    assert abs(of_languages[0] - of_languages[1]) > 1
    assert mean == pytest.approx(np.mean(of_languages))


def test_the_interval_of_the_mean_is_that_of_one_language_where_all_are_alike(
    rng: np.random.Generator,
) -> None:
    """Two languages that say the same are one language: an image is hard in both or in none."""
    images = 60
    once = rng.standard_normal((images, images)).astype(np.float32) + 2 * np.eye(
        images, dtype=np.float32
    )
    owner = np.repeat(np.arange(images), 2)
    pools = by_language(
        System.of(
            "mine", np.repeat(once, 2, axis=1), owner, languages=np.tile(["de", "en"], images)
        )
    )
    measured = {
        name: (rows, evaluate(pool.scores, pool.caption_image))
        for name, (pool, rows, _) in pools.items()
    }
    own = intervals(measured["en"][1])["", "RSUM"]
    np.testing.assert_allclose(mean_recall(measured), [own.value / 6, own.low / 6, own.high / 6])


@pytest.mark.slow
def test_the_interval_of_the_mean_holds_it_in_most_test_sets() -> None:
    """Languages that share their hard images: the mean's interval is no narrower for there being
    several.
    """
    held, draws, truth = 0, 120, []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        images = 80
        hard = rng.random(images) < 0.5
        scores = rng.standard_normal((images, 2 * images)).astype(np.float32)
        owner = np.repeat(np.arange(images), 2)
        scores[owner, np.arange(2 * images)] += np.where(hard[owner], 0.5, 4)
        pools = by_language(
            System.of("mine", scores, owner, languages=np.tile(["de", "en"], images))
        )
        truth.append(
            mean_recall(
                {
                    name: (rows, evaluate(pool.scores, pool.caption_image))
                    for name, (pool, rows, _) in pools.items()
                }
            )
        )
    expected = np.mean([value for value, _, _ in truth])
    held = sum(low <= expected <= high for _, low, high in truth)
    assert 0.90 * draws <= held <= draws


@pytest.mark.slow
def test_multi30k_2016_checks_the_number_of_images_and_of_captions_in_each_language() -> None:
    rules = protocol("multi30k_2016")
    assert {name: rules.of_language(name).captions_per_image for name in EACH} == EACH
    assert protocol("all").of_language("eu").captions_per_image is None
    with pytest.raises(InputError, match="is of en, de, fr, cs, received captions in eu"):
        rules.of_language("eu")
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="is defined for 1000 images, received 40"):
        measured(pool_of(rng), "multi30k_2016", "expected", SETTINGS)
    pool = pool_of(rng, 1000)
    found = measured(pool, "multi30k_2016", "expected", SETTINGS)
    assert {name: each["captions"] for name, each in found["languages"].items()} == {
        name: 1000 * count for name, count in EACH.items()
    }
    assert pool.languages is not None
    pool.languages[2] = "en"  # an image with four German captions and six English ones
    with pytest.raises(InputError, match="ranks 5 captions of every image, but image row 0 has 4"):
        measured(pool, "multi30k_2016", "expected", SETTINGS)


def manifest_of(**columns: Any) -> Manifest:
    rows = {
        "image_id": [7, 7, 9],
        "file": ["a", "a", "b"],
        "bytes": [1, 1, 1],
        "split": ["test"] * 3,
        "caption_id": [1, 2, 3],
        "caption": ["one", "zwei", "three"],
        **columns,
    }
    return Manifest(pd.DataFrame(rows), "mine", Path())


def test_languages_are_found_by_caption_id_in_the_manifest_that_was_scored() -> None:
    manifest = manifest_of(language=["en", "de", "en"])
    pool = System.of(
        "mine",
        retrieval.as_similarity(np.eye(2, 3, dtype=np.float32)),
        np.array([1, 0, 0]),
        np.array([7, 9]),
        np.array([3, 2, 1]),
        made_from=invented_facts.of_file(manifest=manifest.digest),
    )
    named = with_languages(pool, manifest)
    assert named.languages is not None
    assert named.languages.tolist() == ["en", "de", "en"]
    without = manifest_of()
    assert with_languages(pool, without).languages is None
    assert measured(pool, "all", "expected", SETTINGS) == {}
    with pytest.raises(InputError, match="another manifest of mine; score it again"):
        with_languages(pool, manifest_of(language=["en", "de", "cs"]))
    shorter = manifest_of(language=["en", "de", "en"], caption_id=[1, 2, 4])
    with pytest.raises(InputError, match="the manifest of mine has no caption 3, which mine has"):
        with_languages(
            replace(pool, made_from=invented_facts.of_file(manifest=shorter.digest)), shorter
        )
