"""The best candidates: by sorting, and ties broken by a draw for each query."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipeline.foundation.evaluation.retrieval import Embeddings, as_similarity
from pipeline.foundation.evaluation.retrieval.blocks import Matrix
from pipeline.foundation.evaluation.retrieval.similarity import EqualRows
from pipeline.foundation.evaluation.retrieval.top import INDEXES, Top, top, top_of_index
from pipeline.judge.systems.scores.fuse import fuse
from pipeline.judge.systems.scores.system import System


@pytest.mark.specification
@pytest.mark.parametrize("direction", ["i2t", "t2i"])
def test_agrees_with_sorting_where_nothing_is_tied(
    direction: str, rng: np.random.Generator
) -> None:
    scores = rng.permutation(600).reshape(20, 30).astype(np.float32)
    found = top(as_similarity(scores), direction, 4, rng, block_megabytes=1e-3)  # type: ignore[arg-type]
    assert np.array_equal(
        found.places, np.argsort(-(scores if direction == "i2t" else scores.T), axis=1)[:, :4]
    )


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
def test_each_query_has_a_draw_of_its_own(direction: str) -> None:
    scores = np.zeros((400, 400), np.float32)
    scores[:, 0] = scores[0] = 1  # the first is the best of all; of the others any may come second
    found = top(as_similarity(scores), direction, 2, np.random.default_rng(0))  # type: ignore[arg-type]
    second = found.places[1:, 1]
    assert (found.places[1:, 0] == 0).all()
    # 399 draws of 399 candidates name about 252 of them (1 - 1/e); one draw for all names one.
    assert 200 < len(np.unique(second)) < 300


def test_draws_do_not_depend_on_the_size_of_blocks(rng: np.random.Generator) -> None:
    scores = as_similarity(rng.integers(0, 3, (50, 70)).astype(np.float32))
    whole, parts = (top(scores, "i2t", 5, np.random.default_rng(1), size) for size in (32, 1e-3))  # type: ignore[arg-type]
    assert np.array_equal(whole.places, parts.places)


@pytest.mark.parametrize("way", ["i2t", "t2i"])
@pytest.mark.parametrize("megabytes", [64, 1e-3])
def test_blocks_of_any_size_and_fusions_are_alike(
    way: Any, megabytes: float, rng: np.random.Generator
) -> None:
    scores = rng.permutation(30 * 70).reshape(30, 70).astype(np.float32)
    ranked = np.argsort(-scores, axis=1) if way == "i2t" else np.argsort(-scores.T, axis=1)
    reported: list[int] = []
    found = top(as_similarity(scores), way, 7, rng, megabytes, reported.append)
    assert np.array_equal(found.places, ranked[:, :7])
    assert reported[-1] == len(ranked)
    everything = top(as_similarity(scores), way, ranked.shape[1], rng, megabytes)
    assert np.array_equal(everything.places, ranked)
    member = System.of("a", scores, None, np.arange(30), np.arange(70))
    assert np.array_equal(
        top(fuse([member], "zscore").scores, way, 7, rng, megabytes).places, ranked[:, :7]
    )


def test_without_a_draw_of_equals_the_first_come_first() -> None:
    found = top(as_similarity(np.array([[1, 3, 1, 3, 1]], np.float32)), "i2t", 4)
    assert found.places.tolist() == [[1, 3, 0, 2]]
    assert found.scores.tolist() == [[3, 3, 1, 1]]


@pytest.mark.parametrize("way", ["i2t", "t2i"])
def test_equal_vectors_tie_though_products_are_rounded(way: Any, rng: np.random.Generator) -> None:
    """Of 60 equal candidates any two may be found, however their products are rounded in a
    block.
    """
    vectors = np.tile(rng.standard_normal(33).astype(np.float32), (60, 1))
    queries = rng.standard_normal((300, 33)).astype(np.float32)
    source = Embeddings(queries, vectors) if way == "i2t" else Embeddings(vectors, queries)
    found, again = (top(source, way, 2, np.random.default_rng(3), size) for size in (32, 1e-3))
    assert np.array_equal(found.places, again.places)
    assert np.array_equal(found.scores, again.scores)
    assert (found.scores[:, 0] == found.scores[:, 1]).all()
    assert len(np.unique(found.places)) == 60


@pytest.mark.parametrize("way", ["i2t", "t2i"])
def test_equal_vectors_of_one_side_leave_all_of_the_other_as_candidates(
    way: Any, rng: np.random.Generator
) -> None:
    images, captions = (rng.standard_normal((count, 8)).astype(np.float32) for count in (6, 20))
    sides = {"images": images, "captions": captions}
    for side in sides:
        repeated = sides[side].copy()
        repeated[1] = repeated[4]
        both = sides | {side: repeated}
        exact = both["images"].astype(np.float64) @ both["captions"].T.astype(np.float64)
        ordered = np.argsort(-exact if way == "i2t" else -exact.T, axis=1, kind="stable")
        found = top(Embeddings(both["images"], both["captions"]), way, 4)
        assert np.array_equal(found.places, ordered[:, :4]), side


class OrderedBlocks(Matrix):
    """Cells of which the earlier ones are a little greater in blocks, as rounding may have it."""

    equal = EqualRows(np.arange(1), np.arange(300))

    def block(self, images: Any, captions: Any) -> np.ndarray:
        return super().block(images, captions) - np.linspace(0, 10, 300)


def test_equal_pairs_stay_in_their_order() -> None:
    found = top(OrderedBlocks(np.tile([1.0, 2.0], 150)[None]), "i2t", 300)
    assert found.places[0].tolist() == [*range(1, 300, 2), *range(0, 300, 2)]


def test_an_index_is_asked_for_no_more_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    class AsAsked:
        def __init__(self, vectors: np.ndarray) -> None:
            self.vectors = vectors

        def top(self, queries: np.ndarray, k: int) -> Top:
            assert k <= len(self.vectors)
            return Top(np.zeros((len(queries), k), np.int64), np.zeros((len(queries), k)))

    monkeypatch.setattr(INDEXES, "find", lambda name: AsAsked)
    vectors = Embeddings(np.ones((2, 4), np.float32), np.ones((3, 4), np.float32))
    assert top_of_index("as asked", vectors, "i2t", 9).places.shape == (2, 3)
    assert top_of_index("as asked", vectors, "t2i", 9).places.shape == (3, 2)
