"""Relevance as data: many right answers against sorting, folds, two directions, and what is
refused.
"""

from __future__ import annotations

import numpy as np
import pytest
from sorting import best_positions

from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval import (
    Embeddings,
    Protocol,
    QueryRanks,
    Relevance,
    rank,
)
from pipeline.foundation.evaluation.retrieval.relevance import Positives, as_relevance
from pipeline.foundation.evaluation.statistics import intervals
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.fuse import fuse
from pipeline.judge.systems.scores.system import System


def random_relevance(
    seed: int, shape: tuple[int, int], apart: bool
) -> tuple[Relevance, list[np.ndarray]]:
    """A relation, as data and as dense matrices [I, C], one for each direction; `apart`: two
    relations.
    """
    generator = np.random.default_rng(seed)
    dense = [generator.random(shape) < generator.choice([0.05, 0.3]) for _ in range(2)]
    for each in dense:
        each[generator.integers(shape[0]), generator.integers(shape[1])] = True
    if not apart:
        order = generator.permutation(np.argwhere(dense[0]))
        return Relevance.of_pairs(order[:, 0], order[:, 1], shape), [dense[0], dense[0]]
    i2t, t2i = np.nonzero(dense[0]), np.nonzero(dense[1].T)
    return Relevance.of_directions(
        Positives.of_pairs(*i2t, shape[0]), Positives.of_pairs(*t2i, shape[1])
    ), dense


def check(found: QueryRanks, scores: np.ndarray, right: np.ndarray) -> None:
    """scores, right: [Q, n]."""
    asking = np.flatnonzero(right.any(1))
    assert np.array_equal(found.query, asking)
    places = [
        best_positions(scores[query], set(np.flatnonzero(right[query]).tolist()))
        for query in asking
    ]
    assert found.ranks() == pytest.approx([np.mean(each) for each in places])
    assert np.array_equal(found.ranks("optimistic"), [min(each) for each in places])
    assert np.array_equal(found.ranks("pessimistic"), [max(each) for each in places])
    for k in (1, 3):
        assert found.hits(k) == pytest.approx([np.mean(np.array(each) <= k) for each in places])


@pytest.mark.slow
@pytest.mark.specification
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("kind", ["matrix", "rank", "zscore"])
def test_many_right_answers_agree_with_sorting(kind: str, apart: bool) -> None:
    for seed in range(40):
        generator = np.random.default_rng(seed)
        shape = (int(generator.integers(2, 9)), int(generator.integers(2, 15)))
        scores = generator.integers(0, generator.choice([4, 1000]), shape).astype(np.float32)
        relevance, dense = random_relevance(seed, shape, apart)
        source = scores if kind == "matrix" else fuse([System.of("a", scores)], kind).scores
        found = rank(source, relevance, block_megabytes=3e-4)
        check(found.i2t, scores, dense[0])
        check(found.t2i, scores.T, dense[1].T)


@pytest.mark.slow
@pytest.mark.parametrize("apart", [False, True])
def test_equal_vectors_tie_with_right_ones(apart: bool) -> None:
    for seed in range(40):
        generator = np.random.default_rng(seed)
        images, captions = (
            generator.standard_normal((size, 5)).astype(np.float32)[
                generator.integers(0, size, size)
            ]
            for size in (9, 14)
        )
        relevance, dense = random_relevance(seed, (9, 14), apart)
        exact = images.astype(np.float64) @ captions.astype(np.float64).T
        exact = exact.round(5)  # equal vectors, and no others, are equal
        source = Embeddings(images, captions)
        found = rank(source, relevance, block_megabytes=2e-4)
        check(found.i2t, exact, dense[0])
        check(found.t2i, exact.T, dense[1].T)


def test_one_image_a_caption_is_a_relation_like_any_other(rng: np.random.Generator) -> None:
    scores, owner = rng.random((20, 60)), rng.integers(0, 20, 60)
    pairs = Relevance.of_pairs(owner, np.arange(60), (20, 60))
    assert pairs.equals(Relevance.of_owner(owner, 20))
    assert evaluate(scores, owner, Protocol("fifths", folds=5)) == evaluate(
        scores, pairs, Protocol("fifths", folds=5)
    )


@pytest.mark.parametrize("apart", [False, True])
def test_a_selection_keeps_the_pairs_inside(apart: bool, rng: np.random.Generator) -> None:
    relevance, dense = random_relevance(3, (12, 30), apart)
    images, captions = rng.permutation(12)[:7], rng.permutation(30)[:19]
    few = relevance.select(images, captions)
    for mine, whole in ((few.i2t, dense[0]), (few.t2i, dense[1].T)):
        chosen = whole[np.ix_(*((images, captions) if whole is dense[0] else (captions, images)))]
        found = np.zeros(chosen.shape, bool)
        found[mine.query, mine.candidate] = True
        assert np.array_equal(found, chosen)
    kept = np.isin(relevance.owner[captions], images)
    assert np.array_equal(few.owner >= 0, kept)
    assert np.array_equal(images[few.owner[kept]], relevance.owner[captions][kept])
    assert relevance.select(np.arange(12), np.arange(30)) is relevance


def test_grades_follow_their_pairs() -> None:
    relevance = Relevance.of_pairs(
        np.array([2, 0, 1]), np.array([0, 1, 0]), (3, 2), np.array([1.0, 2.0, 3.0])
    )
    assert relevance.t2i.candidate.tolist() == [1, 2, 0]
    assert relevance.t2i.grades.tolist() == [3, 1, 2]
    assert relevance.i2t.grades.tolist() == [2, 3, 1]
    reordered = relevance.select(np.array([2, 1]), np.array([0])).t2i
    assert (reordered.candidate.tolist(), reordered.grades.tolist()) == ([0, 1], [1, 3])


def test_refuses_a_relation_of_another_size_or_without_pairs() -> None:
    nothing = Relevance.of_owner(np.full(3, -1), 2)
    with pytest.raises(InputError, match="nothing to rank"):
        as_relevance(nothing, (2, 3))
    one_way = Relevance.of_directions(
        Positives.of_pairs(np.array([1]), np.array([2]), 2),
        Positives.of_pairs(np.empty(0, int), np.empty(0, int), 3),
    )
    with pytest.raises(InputError, match="no caption has a right image"):
        evaluate(np.zeros((2, 3)), one_way)
    with pytest.raises(
        InputError, match="expected 2 images x 4 captions as the matrix has, received 2 x 3"
    ):
        evaluate(np.zeros((2, 4)), nothing)


def test_captions_of_images_outside_the_pool_are_drawn_with_their_first_right_image() -> None:
    relevance = Relevance.of_pairs(
        np.array([0, 1, 1]), np.array([0, 0, 1]), (2, 2), owner=np.array([-1, 1])
    )
    assert relevance.drawn_with.tolist() == [0, 1]
    metrics = evaluate(np.eye(2), relevance)
    assert intervals(metrics)["t2i", "R@1"].value == 100


def test_a_caption_is_drawn_with_its_own_image_though_another_is_right() -> None:
    right = (np.array([2, 1, 2]), np.array([0, 1, 2]))
    relevance = Relevance.of_pairs(*right, (3, 3), owner=np.array([0, -1, 1]))
    assert relevance.drawn_with.tolist() == [0, 1, 1]
