"""Mistakes of measurement, each made here in plain numpy as another tool would make it: explain
names exactly that one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from pipeline.judge.explain import explain

IMAGES, EACH = 40, 5
Sizes = Sequence[int]


def drawn(images: int = IMAGES, each: int = EACH) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of images and captions, of different lengths."""
    draw = np.random.default_rng(4)
    pictures = draw.normal(size=(images, 12)) * draw.uniform(0.5, 2, (images, 1))
    captions = np.repeat(pictures, each, 0) + 2.5 * draw.normal(size=(images * each, 12))
    captions *= draw.uniform(0.2, 4, (images * each, 1))
    return pictures.astype(np.float32), captions.astype(np.float32)


def ranks(of_images: np.ndarray, of_captions: np.ndarray, each: int) -> tuple[np.ndarray, ...]:
    """The rank from 1 of each image's best caption, and of each caption's image."""
    first = []
    for image, row in enumerate(of_images):
        first.append(1 + np.flatnonzero(np.argsort(-row) // each == image)[0])
    place = []
    for caption, column in enumerate(of_captions.T):
        place.append(1 + np.flatnonzero(np.argsort(-column) == caption // each)[0])
    return np.array(first), np.array(place)


def recalls(first: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Recall at 1, 5 and 10 of both directions: [2, 3]."""
    of_ways = [[100 * (ranked <= k).mean() for k in (1, 5, 10)] for ranked in (first, place)]
    return np.array(of_ways)


def measured(scores: np.ndarray, each: int = EACH) -> np.ndarray:
    return recalls(*ranks(scores, scores, each))


def published(of_ways: np.ndarray) -> str:
    """As a paper prints them."""
    printed = []
    for way, of_way in zip(("i2t", "t2i"), of_ways, strict=True):
        printed += [f"{way}_R@{k}={value:.2f}" for k, value in zip((1, 5, 10), of_way, strict=True)]
    return ",".join(printed)


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def folds(scores: np.ndarray, chosen: Sequence[np.ndarray]) -> np.ndarray:
    means = []
    for images in chosen:
        columns = (EACH * images[:, None] + np.arange(EACH)).ravel()
        means.append(measured(scores[np.ix_(images, columns)]))
    return np.mean(means, axis=0)


def softmax(scores: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def by_way(corrected: Callable[[np.ndarray, int], np.ndarray], scores: np.ndarray) -> np.ndarray:
    """Corrected over the queries: for images down the columns (axis 0), for captions along the
    rows.
    """
    return recalls(*ranks(corrected(scores, 0), corrected(scores, 1), EACH))


def csls(scores: np.ndarray) -> np.ndarray:
    of_image = np.sort(scores, 1)[:, -10:].mean(1)
    of_caption = np.sort(scores, 0)[-10:].mean(0)
    return 2 * scores - of_image[:, None] - of_caption


def below(scores: np.ndarray) -> np.ndarray:
    first, place = ranks(scores, scores, EACH)
    return recalls(first + 1, place + 1)  # rank < K, with ranks from 1


PICTURES, CAPTIONS = drawn()
VECTORS = (PICTURES, CAPTIONS)
SCORES = PICTURES @ CAPTIONS.T
COSINES = (unit(PICTURES) @ unit(CAPTIONS).T).astype(np.float32)
NUMBERS = np.arange(IMAGES)

CASES: dict[str, tuple[object, np.ndarray]] = {
    "the mean of both directions": (SCORES, np.tile(measured(SCORES).mean(0), (2, 1))),
    "vectors of images alone divided by their lengths": (
        VECTORS,
        measured(unit(PICTURES) @ CAPTIONS.T),
    ),
    "vectors of captions alone divided by their lengths": (
        VECTORS,
        measured(PICTURES @ unit(CAPTIONS).T),
    ),
    "an image's captions averaged into one vector": (
        VECTORS,
        measured(PICTURES @ CAPTIONS.reshape(IMAGES, EACH, -1).mean(1).T, 1),
    ),
    "the mean of 2 folds, image i in fold i mod 2": (
        SCORES,
        folds(SCORES, [NUMBERS[fold == NUMBERS % 2] for fold in range(2)]),
    ),
    "the mean of 5 folds, image i in fold i mod 5": (
        SCORES,
        folds(SCORES, [NUMBERS[fold == NUMBERS % 5] for fold in range(5)]),
    ),
    "the mean of 5 folds of consecutive images": (SCORES, folds(SCORES, np.split(NUMBERS, 5))),
    "the mean of 2 folds of consecutive images": (SCORES, folds(SCORES, np.split(NUMBERS, 2))),
    "ranks counted from 1 but tested with rank < K: R@(K − 1)": (SCORES, below(SCORES)),
    "only the first three captions of each image": (
        SCORES,
        measured(SCORES.reshape(IMAGES, IMAGES, EACH)[:, :, :3].reshape(IMAGES, -1), 3),
    ),
    "scores corrected by the test queries: CSLS, k = 10": (COSINES, measured(csls(COSINES))),
    "scores corrected by the test queries: inverted softmax, β = 20": (
        COSINES,
        by_way(lambda scores, axis: softmax(20 * scores, axis), COSINES),
    ),
    "scores corrected by the test queries: dual softmax, β = 1": (
        20 * COSINES,
        by_way(lambda scores, axis: scores * softmax(scores, axis), 20 * COSINES),
    ),
    "scores corrected by the test queries: dual softmax, β = 20": (
        COSINES,
        by_way(lambda scores, axis: scores * softmax(20 * scores, axis), COSINES),
    ),
    "scores corrected by the test queries: dual softmax, β = 100": (
        COSINES / 4,
        by_way(lambda scores, axis: scores * softmax(100 * scores, axis), COSINES / 4),
    ),
}


@pytest.mark.parametrize("words", CASES)
def test_a_mistake_that_was_made_is_named(words: str) -> None:
    given, of_ways = CASES[words]
    found = explain(given, published(of_ways), most=1)
    assert {variant.differences for variant in found.reproducing} == {(words,)}


def test_a_mean_of_directions_that_ends_in_a_half_is_found_by_either_rounding() -> None:
    """Of 23.0 and 17.3 the mean is 20.15: print makes 20.1, numpy 20.2."""
    draw = np.random.default_rng(1)
    pictures = draw.normal(size=(100, 8))
    owner = np.repeat(np.arange(100), 10)
    scores = pictures @ (pictures[owner] + 1.5 * draw.normal(size=(1000, 8))).T
    of_images = 100 * (owner[scores.argmax(1)] == np.arange(100)).mean()
    of_captions = 100 * (scores.argmax(0) == owner).mean()
    mean = (of_images + of_captions) / 2
    by_print, by_numpy = f"{mean:.1f}", str(np.round(mean, 1))
    assert by_print != by_numpy
    for number in (by_print, by_numpy):
        found = explain(scores, f"i2t_R@1={number},t2i_R@1={number}", captions_per_image=10, most=1)
        assert found.tried[0].differences == ("the mean of both directions",), number
        assert found.tried[0].reproduces, number


def test_scores_of_an_images_captions_may_be_averaged_without_vectors() -> None:
    of_ways = measured(SCORES.reshape(IMAGES, IMAGES, EACH).mean(2), 1)
    found = explain(SCORES, published(of_ways), most=1)
    assert {variant.differences for variant in found.reproducing} == {
        ("an image's captions averaged into one vector",)
    }


def test_an_unstable_sort_is_between_the_worst_and_the_best_order() -> None:
    """In a random order of ties, as no sort of explain's breaks them."""
    coarse = np.round(SCORES / 6)
    shaken = coarse + np.random.default_rng(0).uniform(0, 0.5, SCORES.shape)
    found = explain(coarse, published(measured(shaken)), most=1)
    assert not found.reproducing
    assert found.bounds[0].differences == ()
    assert " ".join(str(found).split()).startswith(
        "Possible reason found: an unstable sort such as numpy's argsort; measured by the protocol"
    )
    for scores in (SCORES, coarse):  # without ties, and far from any order of them
        assert explain(scores, "i2t_R@1=1.00,t2i_R@1=99.00", most=1).bounds == ()
