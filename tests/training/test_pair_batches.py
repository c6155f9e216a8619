"""Wrong pairs: never of one image, half of each kind, hard ones from the nearest; subsets within
each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from pipeline.foundation.manifest import Manifest, Split
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.recipe import Ance, Pairs
from pipeline.make.heads.cross import listwise, pair_cross_entropy
from pipeline.make.heads.sides import Side
from pipeline.make.training import sampling
from pipeline.make.training.batches import Batch
from pipeline.make.training.pairs import PairBatch, _state, draw, nearest
from pipeline.make.training.sampling import subset


@pytest.fixture
def split() -> Split:
    image = np.repeat(np.arange(40), 5)
    return Split(
        "train", np.arange(40), np.arange(40) * 7 + 3, np.arange(200), image, np.full(200, "a", "T")
    )


@pytest.mark.parametrize("hard", [0.0, 0.25, 1.0])
def test_wrong_pairs_are_wrong_and_as_hard_as_asked(
    split: Split, hard: float, rng: np.random.Generator
) -> None:
    images, captions = rng.normal(size=(40, 8)).astype("f4"), rng.normal(size=(200, 8)).astype("f4")
    found = nearest(images, captions, split.caption_image, 3)
    drawn_for, by_caption = rng.integers(200, size=4000), rng.random(4000) < 0.5
    drawn = draw(split, drawn_for, by_caption, Pairs(negatives=2, hard=hard), found, rng)
    own = split.caption_image[drawn_for]
    assert (drawn[by_caption] != own[by_caption, None]).all()
    assert (split.caption_image[drawn[~by_caption]] != own[~by_caption, None]).all()
    near = np.where(by_caption[:, None], found.images[drawn_for], found.captions[own])
    share = (drawn[:, :, None] == near[:, None]).any(2).mean()
    assert share == pytest.approx(hard + (1 - hard) * (3 / 39 + 3 / 195) / 2, abs=0.02)


class Numbers:
    """Reads images and captions as their numbers."""

    own = slice(None)

    def __init__(self, split: Split) -> None:
        self.split = split

    def images(self, images: np.ndarray, rng: np.random.Generator) -> Side:
        return Side(torch.tensor(images)[:, None, None], torch.ones(len(images)))

    def captions(self, captions: np.ndarray, rng: np.random.Generator) -> Side:
        return Side(torch.tensor(captions)[:, None], torch.ones(len(captions)))


def test_half_of_the_pairs_get_other_captions_and_the_others_other_images(
    split: Split, rng: np.random.Generator
) -> None:
    batches: Any = Numbers(split)
    captions = rng.permutation(200)
    images = split.caption_image[captions]
    positives = Batch(batches.images(images, rng), batches.captions(captions, rng))
    batch = PairBatch.drawn(batches, positives, captions, Pairs(negatives=3), None, rng)
    image = batch.images.values[batch.image, 0, 0].numpy()
    caption = batch.captions.values[batch.caption, 0].numpy()
    np.testing.assert_array_equal(image[:, 0], images)
    np.testing.assert_array_equal(caption[:, 0], captions)
    assert (split.caption_image[caption] != image)[:, 1:].all()
    keeps_caption = (caption == captions[:, None]).all(1)
    keeps_image = (image == images[:, None]).all(1)
    assert (keeps_caption ^ keeps_image).all()
    assert keeps_caption.mean() == pytest.approx(0.5, abs=0.1)


def test_near_negatives_are_drawn_alike_from_all_that_are_near(
    split: Split, rng: np.random.Generator
) -> None:
    batches: Any = Numbers(split)
    vectors = (rng.normal(size=(count, 8)).astype("f4") for count in (40, 200))
    near = nearest(*vectors, split.caption_image, 6)
    captions = rng.permutation(200)
    images = split.caption_image[captions]
    batch = PairBatch.near(batches, captions, Ance(negatives=2), near, rng)
    for found, rows, positive, nearest_ones in (
        (batch.images.values[:, 0, 0], batch.image, images, near.images[captions]),
        (batch.captions.values[:, 0], batch.caption, captions, near.captions[images]),
    ):
        taken = found[rows].numpy()
        np.testing.assert_array_equal(taken[:, 0], positive)
        is_taken = (taken[:, 1:, None] == nearest_ones[:, None]).any(1)
        assert (is_taken.sum(1) == 2).all(), "two different ones of those that are near"
        np.testing.assert_allclose(is_taken.mean(0), 2 / 6, atol=0.1)
    few = PairBatch.near(batches, captions, Ance(negatives=9), near, rng)
    assert few.image.shape == few.caption.shape == (200, 1 + 6)


def test_the_log_says_how_many_positives_score_above_all_their_negatives() -> None:
    scores = torch.tensor([[2.0, 1.0, 3.0], [1.0, 0.0, -1.0], [1.0, 1.0, 0.0], [0.5, 0.0, 0.0]])
    assert _state(scores) == pytest.approx(
        {
            "first": 2 / 4,  # a tie is not above
            "similarity": 8.5 / 12,
            "separation": 4.5 / 4 - 4 / 8,
            "spread": 4.0,
        }
    )


@pytest.mark.specification
def test_the_nearest_are_those_of_a_full_sort(rng: np.random.Generator) -> None:
    images, captions, image = (
        rng.normal(size=(6, 4)),
        rng.normal(size=(18, 4)),
        np.repeat(np.arange(6), 3),
    )
    found = nearest(images.astype("f4"), captions.astype("f4"), image, 4)
    products = np.where(image == np.arange(6)[:, None], -np.inf, images @ captions.T)
    np.testing.assert_array_equal(found.captions, np.argsort(-products, axis=1)[:, :4])
    np.testing.assert_array_equal(found.images, np.argsort(-products.T, axis=1)[:, :4])
    assert nearest(images.astype("f4"), captions.astype("f4"), image, 50).captions.shape == (6, 15)
    with pytest.raises(InputError, match="two images or more"):
        nearest(np.ones((1, 4), "f4"), np.ones((3, 4), "f4"), np.zeros(3, int), 4)


def test_of_equally_near_negatives_the_first_are_taken() -> None:
    """Captions of one text have equal vectors, and any order of theirs must not decide what a head
    learns from.
    """
    found = nearest(np.eye(3, dtype="f4"), np.ones((300, 3), "f4"), np.arange(300) % 3, 4)
    assert found.captions.tolist() == [[1, 2, 4, 5], [0, 2, 3, 5], [0, 1, 3, 4]]
    assert found.images[:3].tolist() == [[1, 2], [0, 2], [0, 1]]


@pytest.mark.specification
def test_the_losses_by_hand() -> None:
    logits = torch.tensor([[[1.0, 3.0], [0.0, 1.0]], [[2.0, 0.0], [1.0, 0.5]]])
    right, wrong = (
        -torch.log_softmax(logits, -1)[:, place, kind] for place, kind in ((0, 1), (1, 0))
    )
    torch.testing.assert_close(pair_cross_entropy(logits), torch.cat([right, wrong]).mean())
    scores = torch.tensor([[2.0, 1.0], [-2.0, -0.5]])
    torch.testing.assert_close(listwise(logits), -torch.log_softmax(scores, -1)[:, 0].mean())


def test_subsets_lie_within_each_other_whatever_the_order(split: Split, scenes: Manifest) -> None:
    small, large = (set(subset(split, size, 0).image_ids.tolist()) for size in (5, 20))
    assert small < large
    assert len(large) == 20
    assert small != set(subset(split, 5, 1).image_ids.tolist())
    turned = Split(
        "train",
        split.store_rows[::-1],
        split.image_ids[::-1],
        split.caption_ids,
        split.caption_image,
        split.captions,
    )
    assert set(subset(turned, 5, 0).image_ids.tolist()) == small
    assert subset(split, None, 0) is split
    assert len(subset(split, 5, 0).captions) == 25
    with pytest.raises(InputError, match="expected at most 40 of train, got 41"):
        subset(split, 41, 0)


def test_a_stretch_takes_every_caption_once_a_pass_wherever_it_is_cut(split: Split) -> None:
    whole = sampling.stretch(split, "uniform", 3, 0, 500)
    for each in (whole[:200], whole[200:400]):
        np.testing.assert_array_equal(np.sort(each), np.arange(200))
    parts = [sampling.stretch(split, "uniform", 3, start, 100) for start in range(0, 500, 100)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
