"""Notes on likely mistakes: each mistake is noticed, and weak, random and hubby scores get no
note.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval import (
    Embeddings,
    Relevance,
    degenerate,
    mistakes,
    siblings,
)
from pipeline.foundation.evaluation.retrieval.ranks import QueryRanks, Ranks
from pipeline.foundation.evaluation.retrieval.similarity import as_similarity, select
from pipeline.foundation.parts.errors import InputError

IMAGES, EACH = 120, 5
OWNER = np.arange(IMAGES * EACH) // EACH


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def system(noise: float, images: int = IMAGES, each: int = EACH, seed: int = 0) -> np.ndarray:
    """Scores of images and captions that show the same, apart from noise: [I, C]."""
    rng = np.random.default_rng(seed)
    shown = rng.standard_normal((images, 64))
    captions = np.repeat(shown, each, 0) + noise * rng.standard_normal((images * each, 64))
    return (unit(shown + noise * rng.standard_normal(shown.shape)) @ unit(captions).T).astype(
        np.float32
    )


def notes(
    scores: np.ndarray, ids: tuple[np.ndarray, np.ndarray] | None = None, ordered: bool = False
) -> list[str]:
    relevance = Relevance.of_owner(
        np.arange(scores.shape[1]) // (scores.shape[1] // len(scores)), len(scores)
    )
    return mistakes.of_scores(
        as_similarity(scores), relevance, evaluate(scores, relevance).ranks, ids, ordered
    )


def dealt(size: int, count: int) -> np.ndarray:
    return np.argsort(np.arange(size) % count, kind="stable")


def as_text(size: int) -> np.ndarray:
    return np.argsort(np.arange(size).astype(str), kind="stable")


def softmax(scores: np.ndarray, axis: int | None) -> np.ndarray:
    raised = np.exp(scores - scores.max(axis, keepdims=True))
    return np.asarray(raised / raised.sum(axis, keepdims=True))


def standardised(scores: np.ndarray, axis: int) -> np.ndarray:
    return (scores - scores.mean(axis, keepdims=True)) / scores.std(axis, keepdims=True)


def ranged(scores: np.ndarray, axis: int | None) -> np.ndarray:
    low, high = scores.min(axis, keepdims=True), scores.max(axis, keepdims=True)
    return np.asarray((scores - low) / (high - low))


def ranks(scores: np.ndarray, axis: int) -> np.ndarray:
    return scores.argsort(axis).argsort(axis)


RIGHT = system(0.8)
EXACT = RIGHT.astype(np.float64)
WRONG = {
    "are these distances? --distance": -RIGHT,
    "--distance ranks the smallest first": 1 - system(1.5),
    "if caption j is of image j % 120": RIGHT[:, dealt(600, 5)],
    "if the images are in reverse order": RIGHT[::-1],
    "if each image is one row later": np.roll(RIGHT, 1, 0),
    "if each image is one row earlier": np.roll(RIGHT, -1, 0),
    "if rows are sorted by the images' ids as text": RIGHT[as_text(120)],
    "if columns are sorted by the captions' ids as text": RIGHT[:, as_text(600)],
    "if the images were dealt to 4 processes": RIGHT[dealt(120, 4)],
    "if the captions were dealt to 8 processes": RIGHT[:, dealt(600, 8)],
    "yet the scores pair each image with a few captions": RIGHT[
        :, np.random.default_rng(0).permutation(600)
    ],
    "compare it with that of --manifest": RIGHT[np.random.default_rng(1).permutation(120)],
    "is this a file of vectors? give it with": unit(
        np.random.default_rng(2).standard_normal((120, 600))
    ),
    "97 % of the scores are -100": np.where(ranks(EXACT, 1) >= 584, EXACT, -100),
    "25 % of the scores are 0": np.where(
        (np.arange(120) < 60)[:, None] | (np.arange(600) < 300), EXACT, 0
    ),
    "20 rows and 100 columns hold one value each": np.where(
        (np.arange(120) < 100)[:, None] & (np.arange(600) < 500), EXACT, 0
    ),
    "1 row holds one value": np.where((np.arange(120) < 119)[:, None], EXACT, 0.5),
    "all scores are 0.25: they tell": np.full((120, 600), 0.25),
    "each column holds one value: all images have the same": np.tile(EXACT[:1], (120, 1)),
    "each row holds one value: all captions have the same": np.tile(EXACT[:, :1], (1, 600)),
    "each row sums to 1, as after a softmax over captions: caption → image": softmax(
        100 * EXACT, 1
    ).astype(np.float16),
    "row sums to 1, as after a softmax over captions": softmax(EXACT, 1).astype(np.float32),
    "each column sums to 1, as after a softmax over images: image → caption": softmax(
        20 * EXACT, 0
    ),
    "each row sums to 100: caption → image": 100 * softmax(20 * EXACT, 1),
    "each row is the logarithm of a softmax over captions": np.log(softmax(20 * EXACT, 1)),
    "each column is the logarithm of a softmax over images": np.log(softmax(20 * EXACT, 0)),
    "each row holds the same numbers in another order": ranks(EXACT, 1),
    "row holds the same numbers in another order": 1 / (600 - ranks(EXACT, 1)),
    "each column holds the same numbers in another order": ranks(EXACT, 0),
    "each row has the mean 0 and the standard deviation 1": standardised(EXACT, 1),
    "each column has the mean 0 and the standard deviation 1": standardised(EXACT, 0),
    "each row runs from 0 to 1": ranged(EXACT, 1),
    "each column runs from 0 to 1": ranged(EXACT, 0),
    "each row has the largest score 1": EXACT / EXACT.max(1, keepdims=True),
}
COMPARABLE = {
    "probabilities of pairs": 1 / (1 + np.exp(-20 * EXACT)),
    "probabilities that are rounded to 1": (1 / (1 + np.exp(-100 * EXACT))).astype(np.float16),
    "a softmax of all pairs": softmax(20 * EXACT, None),
    "divided by the largest of all": ranged(EXACT, None),
    "a softmax as a weight": EXACT * softmax(20 * EXACT, 0),
    "whole numbers": np.round(EXACT * 10),
    "int8": np.round(EXACT * 127).astype(np.int8),
    "right or wrong": np.eye(120).repeat(5, 1),
    "decided": (EXACT > 0.3) * 1.0,
}


@pytest.mark.specification
@pytest.mark.parametrize("said", WRONG)
def test_a_mistake_is_said_in_one_note(said: str) -> None:
    (note,) = notes(WRONG[said])
    assert said in note


@pytest.mark.specification
@pytest.mark.parametrize("name", COMPARABLE)
def test_scores_that_can_be_compared_get_no_note(name: str) -> None:
    assert notes(COMPARABLE[name]) == []


def test_scores_whose_right_answers_are_last_in_one_direction_alone_are_not_reversed() -> None:
    random = np.random.default_rng(3).random
    for offsets in (random((IMAGES, 1)), random((1, IMAGES * EACH))):
        assert "--distance" not in " ".join(notes(10 * offsets - RIGHT))


def test_scores_that_were_corrected_here_may_be_scaled() -> None:
    relevance = Relevance.of_owner(OWNER, IMAGES)
    scores = softmax(20 * EXACT, 1)
    found = evaluate(scores, relevance).ranks
    source = as_similarity(scores)
    assert mistakes.of_scores(source, relevance, found, given=False) == []
    part = select(source, np.arange(IMAGES), np.arange(IMAGES * EACH)[::-1])
    relevance = relevance.select(np.arange(IMAGES), np.arange(IMAGES * EACH)[::-1])
    assert "sums to 1" in mistakes.of_scores(part, relevance, found)[0]  # type: ignore[arg-type]


def test_places_that_rank_the_best_first_get_both_notes() -> None:
    scaled, reversed_order = notes(ranks(-EXACT, 1))
    assert "holds the same numbers in another order" in scaled
    assert "are these distances?" in reversed_order


def test_vectors_that_were_never_written_are_counted() -> None:
    rng = np.random.default_rng(0)
    images = rng.standard_normal((IMAGES, 16))
    captions = np.repeat(images, EACH, 0) + rng.standard_normal((IMAGES * EACH, 16))
    images[:3], captions[-7:] = 0, 0
    source, relevance = Embeddings(images, captions), Relevance.of_owner(OWNER, IMAGES)
    (note,) = mistakes.of_scores(source, relevance, evaluate(source, relevance).ranks)
    assert note.startswith("3 rows and 7 columns hold one value each")


def test_right_scores_get_no_note() -> None:
    assert notes(RIGHT) == notes(system(1.5)) == notes(system(1.5, each=1)) == []


def test_a_stores_order_is_known_and_its_sign_is_not() -> None:
    assert notes(WRONG["compare it with that of --manifest"], ordered=True) == []
    assert "at the end" in notes(-RIGHT, ordered=True)[0]


def test_ids_say_how_text_sorts_them() -> None:
    ids = np.random.default_rng(3).permutation(5000)[:120]
    order = np.argsort(ids.astype(str), kind="stable")
    (note,) = notes(RIGHT[order], (ids, np.arange(600)))
    assert "rows are sorted by the images' ids as text" in note


def test_ids_say_how_a_shuffling_loader_ordered_both_sides() -> None:
    rng = np.random.default_rng(3)
    images, captions = 7 * rng.permutation(IMAGES) + 3, 2 * rng.permutation(IMAGES * EACH)
    (note,) = notes(RIGHT[(images - 3) // 7][:, captions // 2], (images, captions))
    assert "if images and captions are sorted by their ids, which the file has" in note


def test_each_folds_captions_are_those_that_are_ranked() -> None:
    relevance = Relevance.of_owner(OWNER, IMAGES)
    for scores, count in ((RIGHT, 0), (-RIGHT, 1)):
        found = evaluate(scores, relevance, retrieval.Protocol("4fold", folds=4)).ranks
        assert len(mistakes.of_scores(as_similarity(scores), relevance, found)) == count


def test_images_that_are_there_once_for_each_caption_are_said() -> None:
    """Of a square matrix; rounding moves equal rows, and captions without any image stay apart."""
    noise = 1e-4 * np.random.default_rng(4).standard_normal((600, 600)).astype(np.float32)
    uneven = np.repeat(np.arange(120), np.tile([4, 6], 60))
    for rows, expected in (
        (RIGHT.repeat(5, 0), "groups of 5 that are equal"),
        (RIGHT.repeat(5, 0) + noise, "groups of 5 that are almost equal"),
        (RIGHT[uneven], "groups of 4 to 6 that are equal"),
    ):
        (note,) = notes(rows)
        assert expected in note
        assert "save one row of each" in note
    decided = (system(0.8, 600, 1) > 0.95) * 1.0
    twins = RIGHT.repeat(5, 0)
    twins[60:] = system(0.8, 600, 1)[60:]
    one_class = np.eye(30).repeat(20, 0).repeat(20, 1)[np.random.default_rng(5).permutation(600)]
    innocent_squares = [
        np.eye(600),
        decided,
        twins,
        system(1.5, 600, 1),
        system(0.1, 20, 1),
        one_class,
    ]
    for scores in innocent_squares:
        assert not any("groups of" in note for note in notes(scores))


# What is said of scores at chance whose reason is not known: it names no order.
AT_CHANCE = "the right answers rank as by chance: is the model trained"


def innocent(images: int, each: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Scores that are no mistake: of untrained heads, weak systems and hubs."""
    captions = images * each
    yield rng.standard_normal((images, captions))
    yield np.zeros((images, captions))
    for size in (2, 8, 32, 256):
        fading = np.exp(-4 * np.arange(size) / size)
        shown, turned = rng.standard_normal((images, size)), rng.standard_normal((size, size))
        one, other = rng.standard_normal((images, size)), rng.standard_normal((captions, size))
        alike = np.repeat(rng.standard_normal((images, size)), each, 0) + 0.7 * other
        yield unit(one) @ unit(other).T
        yield one @ (other * rng.uniform(0.2, 5, (captions, 1))).T
        yield unit(fading * (one + 1)) @ unit(fading * (other - 1)).T
        yield unit(fading * one) @ unit((fading * alike) @ turned).T
        yield unit(shown + 4 * one) @ unit(np.repeat(shown, each, 0) + 4 * other).T


@pytest.mark.slow
@pytest.mark.parametrize(
    ("images", "each", "seeds"),
    [(3, 5, 3), (10, 5, 3), (20, 1, 3), (20, 5, 3), (60, 5, 1), (200, 5, 1)],
)
def test_no_false_alarm(images: int, each: int, seeds: int) -> None:
    for seed in range(seeds):
        for scores in innocent(images, each, np.random.default_rng(seed)):
            known = "all scores are 0" if not scores.any() else AT_CHANCE
            assert all(note.startswith(known) for note in notes(scores.astype(np.float32)))


def test_scores_at_chance_are_said_to_be() -> None:
    (note,) = notes(np.random.default_rng(0).standard_normal((60, 300)))
    assert note.startswith(AT_CHANCE)


def test_lengths_that_differ_are_said_and_equal_ones_are_not() -> None:
    rng = np.random.default_rng(0)
    images, captions = unit(rng.standard_normal((30, 8))), unit(rng.standard_normal((150, 8)))
    uneven = captions * rng.uniform(0.2, 5, (150, 1))
    assert mistakes.of_vectors(images, captions) == mistakes.of_vectors(7 * images, captions) == []
    assert mistakes.of_vectors(images.astype(np.float16), captions.astype(np.float16)) == []
    rounded = 10 * images * rng.uniform(0.995, 1.005, (30, 1))  # 9.95 to 10.05
    assert mistakes.of_vectors(rounded, captions) == []
    (note,) = mistakes.of_vectors(images, uneven)
    assert "of caption vectors 0.2" in note
    assert "--normalise" in note
    assert "image vectors" not in note
    square = rng.standard_normal((30, 30))
    assert "give one of them alone" in mistakes.of_vectors(square, square)[0]


def test_normalised_vectors_are_ranked_by_their_cosines() -> None:
    rng = np.random.default_rng(0)
    images, captions = (
        rng.standard_normal((6, 8)).astype(np.float16),
        rng.standard_normal((30, 8)).astype(np.float16),
    )
    cosines = Embeddings(images, captions, normalise=True)
    expected = unit(images.astype(np.float64)) @ unit(captions.astype(np.float64)).T
    assert cosines.block(slice(0, 6), slice(0, 30)) == pytest.approx(expected, abs=1e-6)
    assert cosines.dtype == np.float32
    twice = Embeddings(
        images, np.concatenate([captions, 2 * captions]), normalise=True
    ).equal.captions
    assert (twice[:30] == twice[30:]).all()
    captions[3] = 0
    with pytest.raises(InputError, match="row 3 has the length 0"):
        Embeddings(images, captions, normalise=True)


def _two_views(noise: float, rng: np.random.Generator, images: np.ndarray) -> np.ndarray:
    """Scores of five captions an image, by a system that sees them with some noise."""
    captions = np.repeat(images, 5, axis=0) + noise * rng.standard_normal(
        (5 * len(images), images.shape[1])
    )
    return (images + noise * rng.standard_normal(images.shape)) @ captions.T


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (lambda size, rng: np.arange(size), ""),
        (lambda size, rng: np.arange(size)[::-1], "does if its images are in reverse order"),
        (
            lambda size, rng: np.argsort(np.arange(size).astype(str)),
            "does if its rows are sorted by ids as text",
        ),
        (lambda size, rng: rng.permutation(size), "in one order in both?"),
    ],
)
def test_two_systems_in_different_orders_are_noticed(
    rng: np.random.Generator, order: Any, said: str
) -> None:
    images, size = rng.standard_normal((100, 64)), 100
    one, other = (_two_views(noise, rng, images) for noise in (0.9, 1.1))
    rows = order(size, rng)
    other = other[rows][:, (5 * rows[:, None] + np.arange(5)).reshape(-1)]
    found = mistakes.of_two(as_similarity(one), as_similarity(other), np.repeat(np.arange(size), 5))
    assert [said in each for each in found] == [True] * bool(said)


@pytest.mark.parametrize("raised", [0, 5, 20])
def test_captions_of_one_image_are_recognised_however_far_it_stands_out(raised: float) -> None:
    """They are compared over other images alone; over theirs all of them would be alike."""
    scores = system(0.8) + raised * np.eye(IMAGES).repeat(EACH, 1)
    assert siblings.found(as_similarity(scores))


def test_images_with_fewer_than_two_captions_each_have_no_siblings(
    rng: np.random.Generator,
) -> None:
    for captions in (60, 20):
        scores = 9 * np.eye(60)[:, :captions] + rng.random((60, captions))
        assert not siblings.found(as_similarity(scores)), captions


def test_a_query_is_constant_if_all_its_candidates_tie_and_one_of_them_is_wrong() -> None:
    """Counted of those that ask, in each direction by the candidates of the other side."""
    i2t = QueryRanks(
        query=np.array([0, 1, 3]),
        greater=np.array([0, 0, 0]),
        equal=np.array([4, 0, 2]),
        right=np.array([1, 5, 2]),  # of five captions; the second finds all of them right
    )
    t2i = QueryRanks(
        query=np.arange(2), greater=np.zeros(2, int), equal=np.array([3, 3]), right=np.array([1, 1])
    )
    relevance = Relevance.of_owner(np.array([0, 1, 1, 3, 3]), 4)
    found = degenerate.Constant.of([Ranks(i2t, t2i, relevance)])
    assert found == degenerate.Constant(1, 2, all_images=False, all_captions=True)


def test_rows_that_sum_to_one_by_chance_are_no_softmax() -> None:
    scores = np.random.default_rng(0).standard_normal((30, 40))
    other = np.random.default_rng(1).standard_normal((30, 30))
    scores += (1 - scores.sum(1, keepdims=True)) / 40
    assert "softmax" not in degenerate._in_common(scores, other, 1.0, "captions")
    positive = np.abs(scores) + 0.1
    for total, said in ((1.0, "sums to 1, as after a softmax over captions"), (3.0, "sums to 3")):
        scaled = total * positive / positive.sum(1, keepdims=True)
        spread = float(scaled.std())
        assert degenerate._in_common(scaled, other, spread, "captions") == said


def test_images_that_are_there_once_for_each_caption_are_counted(rng: np.random.Generator) -> None:
    """Pairs already show it; where groups are of unlike sizes no step through the rows is named."""
    vectors = rng.standard_normal((30, 8))
    for sizes, said, advice in (
        (np.full(30, 2), "the 60 rows of image vectors come in 30 groups of 2", "images[::2]"),
        (np.full(30, 5), "the 150 rows of image vectors come in 30 groups of 5", "images[::5]"),
        (np.arange(30) % 3 + 2, "in 30 groups of 2 to 4", "and caption_image, the row of each"),
    ):
        note = mistakes.of_rows(np.repeat(vectors, sizes, axis=0))
        assert said in note
        assert advice in note
        assert ("images[::" in note) == (np.ptp(sizes) == 0)
    assert mistakes.of_rows(vectors) == ""


def test_what_lies_among_ties_is_in_their_middle() -> None:
    """Of a row of one value the right answer has half of the candidates before it."""
    owner, rows = np.arange(40), np.arange(30)
    assert mistakes._front(np.zeros((30, 40)), rows, owner) == pytest.approx(0.5)
    assert mistakes._front(np.eye(40)[:30], rows, owner) == pytest.approx(0.5 / 40)


def test_too_few_of_either_side_say_nothing() -> None:
    for images, captions, folds, has_note in (
        (60, 60, 1, True),
        (10, 60, 1, False),
        (60, 360, 6, False),  # ten images each
        (60, 360, 2, True),
    ):
        owner = np.arange(captions) * images // captions
        scores = np.zeros((images, captions))
        metrics = evaluate(scores, owner, retrieval.Protocol("all", folds=folds))
        relevance = Relevance.of_owner(owner, images)
        found = mistakes.of_scores(as_similarity(scores), relevance, metrics.ranks)
        assert bool(found) is has_note, (images, folds)


def test_two_squares_of_uneven_rows_may_hold_similarities(rng: np.random.Generator) -> None:
    """One uneven side alone are vectors."""
    square, even = 9 * rng.random((8, 8)), unit(rng.random((8, 8)))
    said = "if the files hold similarities, give one of them alone"
    for images, captions, is_said in (
        (square, square[::-1], True),
        (square, even, False),
        (even, square, False),
        (square[:5, :4], square[:6, :4], False),
    ):
        (note,) = mistakes.of_vectors(images, captions)
        assert (said in note) is is_said
