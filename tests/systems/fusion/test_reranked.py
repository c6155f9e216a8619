"""Reranked scores by their definition: candidates above all others, in the order of their worth,
ties kept.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import invented_facts
import numpy as np
import pytest
import zarr

from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval import PROTOCOLS, Embeddings, Protocol, select
from pipeline.foundation.evaluation.retrieval.similarity import EqualRows
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.reranking import candidates
from pipeline.judge.systems.scores.made import Folds, Unknown
from pipeline.judge.systems.scores.reranked import (
    Candidates,
    Combination,
    Folded,
    Reranked,
    Scored,
    _are_candidates,
    read,
    source,
)
from pipeline.judge.systems.scores.system import System

IMAGES, CAPTIONS = 6, 12
OWNER = np.repeat(np.arange(IMAGES), 2)


def searched(scores: np.ndarray) -> System:
    return System.of("retriever", scores, OWNER)


class EveryItemAsks(System):
    """A pool of several data sets of which all are queries."""

    @property
    def queries(self) -> tuple[int, int]:
        return self.shape


def reranked(
    retriever: np.ndarray,
    scorer: np.ndarray,
    k: int,
    protocol: Protocol = PROTOCOLS["all"],
    stored: int | None = None,
) -> Reranked:
    pool = searched(retriever)
    found = candidates.find(pool, protocol, stored or k)
    pairs = candidates.pairs_of(found, CAPTIONS)
    scored = candidates.with_scores(found, pairs, scorer[pairs.image, pairs.caption], CAPTIONS)
    folds = Folds(name=protocol.name, folds=protocol.folds)
    record = invented_facts.reranked(Unknown(), k=k, protocol=folds)
    return source(pool.scores, scored, OWNER, record)


@pytest.mark.specification
@pytest.mark.parametrize("block_bytes", [1, 24 * 12 * 4, 2**20])
@pytest.mark.parametrize("name", ["i2t", "t2i"])
def test_the_order_is_the_scorers_among_k_and_the_retrievers_below(
    rng: np.random.Generator, block_bytes: int, name: str
) -> None:
    retriever, scorer = (rng.normal(size=(IMAGES, CAPTIONS)).astype(np.float32) for _ in range(2))
    matrix = reranked(retriever, scorer, 4).direction(name, block_bytes)  # type: ignore[arg-type]
    found = np.empty((IMAGES, CAPTIONS))
    for rows, columns in matrix.grid(matrix.shape, block_bytes):
        found[rows, columns] = matrix.block(rows, columns)
    every = np.indices(found.shape).reshape(2, -1)
    np.testing.assert_array_equal(matrix.pairs(*every), found.reshape(-1))
    one, two, order = (
        (retriever, scorer, found) if name == "i2t" else (retriever.T, scorer.T, found.T)
    )
    for query in range(len(one)):
        best = np.argsort(-one[query])
        expected = [*sorted(best[:4], key=lambda each: -two[query, each]), *best[4:]]
        assert np.argsort(-order[query]).tolist() == expected


def test_ties_of_the_scorer_stay_ties_and_none_is_made(rng: np.random.Generator) -> None:
    retriever = rng.normal(size=(IMAGES, CAPTIONS)).astype(np.float32)
    scorer = np.zeros((IMAGES, CAPTIONS), np.float32)
    scorer[:, ::2] = np.nextafter(np.float32(0), np.float32(1))  # the least difference there is
    found = reranked(retriever, scorer, 4)
    ranks = retrieval.rank(found, OWNER)
    matrix = found.direction("t2i", 2**20)
    cells = matrix.block(slice(0, IMAGES), slice(0, CAPTIONS))
    assert all(len(np.unique(cells[:, column])) == IMAGES - 3 for column in range(CAPTIONS))
    assert (ranks.t2i.equal <= 3).all()


def test_of_more_stored_candidates_the_first_k_count(rng: np.random.Generator) -> None:
    retriever, scorer = (rng.normal(size=(IMAGES, CAPTIONS)).astype(np.float32) for _ in range(2))
    few, more = (
        reranked(retriever, scorer, 2, stored=stored)
        .direction("t2i", 2**20)
        .block(slice(0, IMAGES), slice(0, CAPTIONS))
        for stored in (2, 4)
    )
    np.testing.assert_array_equal(few, more)


def test_of_folds_with_several_numbers_of_captions_the_smallest_bounds_k() -> None:
    """The first of two folds has three captions, the second one."""
    for owner in ([0, 0, 0, 1], [0, 1, 1, 1]):
        pool = System.of("retriever", np.zeros((2, 4)), np.array(owner))
        halves = Protocol("halves", folds=2)
        assert candidates.sizes(pool, halves, "all") == {"i2t": 1, "t2i": 1}
        with pytest.raises(InputError, match=r"k 2 is above the pool: .* has 1 captions"):
            candidates.sizes(pool, halves, 2)


def test_at_most_the_whole_pool_is_reranked(rng: np.random.Generator) -> None:
    pool = searched(rng.normal(size=(IMAGES, CAPTIONS)))
    assert candidates.sizes(pool, PROTOCOLS["all"], "all") == {"i2t": CAPTIONS, "t2i": IMAGES}
    assert candidates.sizes(pool, PROTOCOLS["all"], IMAGES) == {"i2t": IMAGES, "t2i": IMAGES}
    with pytest.raises(InputError, match=r"k 7 is above the pool: a query .* has 6 images"):
        candidates.sizes(pool, PROTOCOLS["all"], IMAGES + 1)


def test_two_data_sets_with_the_same_ids_are_found_in_any_order_of_rows_and_columns(
    rng: np.random.Generator,
) -> None:
    image_ids, caption_ids = np.arange(IMAGES) % 3, np.arange(CAPTIONS) % 6

    def found(images: np.ndarray, captions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ids, of_captions = image_ids[images], caption_ids[captions]
        pools = tuple(
            System.of(
                name,
                np.zeros((3, 6)),
                None,
                ids[rows],
                of_captions[columns],
                made_from=invented_facts.of_file(dataset=name),
            )
            for name, rows, columns in (
                ("here", slice(3), slice(6)),
                ("there", slice(3, 6), slice(6, 12)),
            )
        )
        whole = replace(
            searched(np.zeros((IMAGES, CAPTIONS), np.float32)), pools=pools
        )  # ties alone
        best = candidates.find(
            EveryItemAsks(**{each.name: getattr(whole, each.name) for each in fields(whole)}),
            PROTOCOLS["all"],
            2,
        )
        return (
            captions[best["i2t"].places][np.argsort(images)],
            images[best["t2i"].places][np.argsort(captions)],
        )

    def mixed(size: int) -> np.ndarray:
        """The rows of each data set in another order."""
        return np.concatenate([rng.permutation(size), size + rng.permutation(size)])

    one, two = found(np.arange(IMAGES), np.arange(CAPTIONS)), found(mixed(3), mixed(6))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])


def test_distractors_are_candidates_and_no_queries() -> None:
    pools = tuple(
        System.of(
            name,
            np.zeros((3, 6)),
            None,
            np.arange(3),
            np.arange(6),
            made_from=invented_facts.of_file(dataset=name),
        )
        for name in ("here", "there")
    )
    retriever = (
        np.tile(np.arange(CAPTIONS, dtype=np.float32), (IMAGES, 1)) + np.arange(IMAGES)[:, None]
    )
    found = candidates.find(replace(searched(retriever), pools=pools), PROTOCOLS["all"], 2)
    assert found["i2t"].places.tolist() == [[11, 10]] * 3
    assert found["t2i"].places.tolist() == [[5, 4]] * 6


def test_rows_and_columns_in_another_order_give_the_same_numbers(rng: np.random.Generator) -> None:
    retriever = rng.integers(0, 3, (IMAGES, CAPTIONS)).astype(
        np.float32
    )  # many ties, also where k ends
    scorer = rng.normal(size=(IMAGES, CAPTIONS)).astype(np.float32)
    images, captions = rng.permutation(IMAGES), rng.permutation(CAPTIONS)
    one = candidates.find(searched(retriever), PROTOCOLS["all"], 3)
    place = np.argsort(images)
    pool = System.of(
        "retriever", retriever[images][:, captions], place[OWNER[captions]], images, captions
    )
    two = candidates.find(pool, PROTOCOLS["all"], 3)
    for query, image in enumerate(images.tolist()):
        assert sorted(captions[two["i2t"].places[query]]) == sorted(one["i2t"].places[image])
    for query, caption in enumerate(captions.tolist()):
        assert sorted(images[two["t2i"].places[query]]) == sorted(one["t2i"].places[caption])
    whole = reranked(retriever, scorer, 3)
    assert evaluate(select(whole, images, captions), place[OWNER[captions]]).rsum == pytest.approx(
        evaluate(whole, OWNER).rsum, abs=1e-9
    )


def test_equal_vectors_outside_the_candidates_stay_equal(rng: np.random.Generator) -> None:
    images = rng.normal(size=(4, 8)).astype(np.float32)
    vectors = Embeddings(images[[0, 1, 2, 3, 3, 3]], np.repeat(images[[0, 1, 2, 3, 3, 3]], 2, 0))
    places = np.zeros((CAPTIONS, 1), np.int64), np.zeros((IMAGES, 1), np.int64)
    mine = {
        "t2i": Candidates(places[0], np.zeros((CAPTIONS, 1))),
        "i2t": Candidates(places[1], np.zeros((IMAGES, 1))),
    }
    folds = np.zeros(IMAGES, np.int64), np.zeros(CAPTIONS, np.int64)
    ranks = retrieval.rank(Reranked(vectors, mine, folds, "all"), OWNER)  # type: ignore[arg-type]
    assert ranks.t2i.equal[6:].tolist() == [2] * 6


def test_another_pool_is_refused(rng: np.random.Generator) -> None:
    scores = rng.normal(size=(IMAGES, CAPTIONS)).astype(np.float32)
    two = Protocol("two", folds=2)
    assert (
        evaluate(reranked(scores, scores, 2, two), OWNER, two).rsum
        == evaluate(scores, OWNER, two).rsum
    )
    for made, measured in (
        (two, Protocol("three", folds=3)),
        (two, PROTOCOLS["all"]),
        (PROTOCOLS["all"], two),
    ):
        with pytest.raises(
            InputError, match=f"reranked by the protocol {made.name}, not by the requested one"
        ):
            evaluate(reranked(scores, scores, 4 if made.folds == 1 else 2, made), OWNER, measured)


def test_an_image_has_its_fold(rng: np.random.Generator) -> None:
    scores = rng.normal(size=(IMAGES, CAPTIONS)).astype(np.float32)
    found = reranked(scores, scores, 2, Protocol("two", folds=2))
    assert [part.tolist() for part in found.fold(4)] == [[3, 4, 5], [6, 7, 8, 9, 10, 11]]
    assert not found.is_whole
    assert reranked(scores, scores, 2).is_whole


def test_combinations_are_the_papers() -> None:
    retrieved, scored = (
        np.array([[0.5, 0.2, -0.1], [9, 8, 5]]),
        np.array([[2.0, 0.0, -3.0], [0.1, 0.0, 0.2]]),
    )
    p = 1 / (1 + np.exp(-scored))
    np.testing.assert_allclose(
        Combination("add", 0.1).of(retrieved, scored, True), 0.1 * retrieved + 0.9 * p
    )
    np.testing.assert_allclose(
        Combination("add", 0.1).of(retrieved, scored, False), 0.1 * retrieved + 0.9 * scored
    )
    e = (retrieved - [[0.1], [5]]) / [[0.6], [4]]
    c = (p - p.min(1, keepdims=True)) / (p.max(1, keepdims=True) - p.min(1, keepdims=True))
    np.testing.assert_allclose(
        Combination("norm_add", 0.5).of(retrieved, scored, True), 0.5 * e + 0.5 * c
    )
    np.testing.assert_array_equal(
        Combination().of(retrieved, np.array([[900.0, 800.0, -900.0]]), True),
        [[900.0, 800.0, -900.0]],
    )
    assert Combination("norm_add", 0.5).of(np.ones((1, 2)), np.ones((1, 2)), False).tolist() == [
        [0.0, 0.0]
    ]
    with pytest.raises(InputError, match="expected a weight from 0 to 1, received 2"):
        Combination("add", 2)
    with pytest.raises(
        InputError, match="unknown combination 'rank': choose one of scorer, add, norm_add"
    ):
        Combination("rank")


def test_what_the_protocol_leaves_out_makes_no_pair() -> None:
    none = np.zeros((2, 2))
    of_captions = Scored(np.array([[1], [-1], [0]]), none, none)
    found = {
        "i2t": Scored(np.array([[2, 0], [-1, -1]]), none, none),
        "t2i": of_captions,
    }
    pairs = candidates.pairs_of(found, 3)
    assert [*zip(pairs.image.tolist(), pairs.caption.tolist(), strict=True)] == [
        (0, 0),
        (0, 2),
        (1, 0),
    ]


def test_stored_candidates_are_rows_of_the_pool_or_none_at_all() -> None:
    for places, fit in (
        ([[0, 2], [-1, -1]], True),
        ([[0, 3], [-1, -1]], False),
        ([[0, -1], [-1, -1]], False),
        ([[0, -2], [1, 2]], False),
        ([[0, 2]], False),
    ):
        assert _are_candidates(np.array(places), 2, 3) is fit, places


def test_the_scorers_order_alone_has_no_share_of_the_retriever(rng: np.random.Generator) -> None:
    retriever, scorer = rng.random((2, IMAGES, CAPTIONS))
    pool = searched(retriever)
    found = candidates.find(pool, PROTOCOLS["all"], "all")
    pairs = candidates.pairs_of(found, CAPTIONS)
    scored = candidates.with_scores(found, pairs, scorer[pairs.image, pairs.caption], CAPTIONS)
    record = invented_facts.reranked(Unknown(), k="all", weight=1.0)
    matrix = source(pool.scores, scored, OWNER, record).direction("i2t", 1000)
    ordered = matrix.block(slice(0, IMAGES), slice(0, CAPTIONS))
    np.testing.assert_array_equal(np.argsort(ordered, axis=1), np.argsort(scorer, axis=1))


def test_queries_that_the_protocol_leaves_out_are_measured_by_no_other() -> None:
    """All of a pool in one fold, or all outside of any."""
    whole = np.arange(IMAGES), np.arange(CAPTIONS)
    for number, fits in ((0, True), (3, True), (-1, False)):
        folds = np.full(IMAGES, number), np.full(CAPTIONS, number)
        folded = Folded(retrieval.as_similarity(np.zeros((IMAGES, CAPTIONS))), folds, "thirds")
        if fits:
            folded.select(*whole).require_one_fold()
            continue
        with pytest.raises(InputError, match="reranked by the protocol thirds, not by the"):
            folded.select(*whole).require_one_fold()


@pytest.mark.parametrize(
    ("places", "fits"),
    [
        ([[0, 1], [2, 3]], True),
        ([[0, 1], [-1, -1]], True),
        ([[0, 1], [-2, -2]], False),
        ([[0, 1], [-1, -2]], False),
        ([[0, -1], [2, 3]], False),
        ([[0, 4], [2, 3]], False),
        ([[-1, -1], [-1, -1]], True),
    ],
)
def test_candidates_are_existing_ones_or_none_at_all(places: list[list[int]], fits: bool) -> None:
    assert _are_candidates(np.array(places), 2, 4) == fits
    assert not _are_candidates(np.array(places), 3, 4)
    assert not _are_candidates(np.array(places, np.int32), 2, 4)


@pytest.mark.parametrize("name", ["i2t", "t2i"])
def test_copies_below_the_candidates_tie_though_their_scores_are_rounded(name: str) -> None:
    """Rows 1 and 4, and columns 2 and 5, are equal vectors; their scores differ in the last bit."""
    scores = np.arange(48.0).reshape(6, 8)
    scores[4], scores[:, 5] = np.nextafter(scores[1], 99), np.nextafter(scores[:, 2], 99)
    labels = EqualRows(np.array([0, 1, 2, 3, 1, 5]), np.array([0, 1, 2, 3, 4, 2, 6, 7]))
    of_vectors = retrieval.as_similarity(scores)
    of_vectors.equal = labels  # type: ignore[union-attr]
    queries, size = (6, 8) if name == "i2t" else (8, 6)
    none = Candidates(np.zeros((queries, 1), np.int64) + size - 1, np.zeros((queries, 1)))
    folds = np.zeros(6, np.int64), np.zeros(8, np.int64)
    found = Reranked(of_vectors, {name: none}, folds, "all")  # type: ignore[arg-type, dict-item]
    cells = found.direction(name, 2**20).block(slice(0, 6), slice(0, 8))  # type: ignore[arg-type]
    if name == "i2t":
        np.testing.assert_array_equal(cells[:, 5], cells[:, 2])
    else:
        np.testing.assert_array_equal(cells[4], cells[1])


@pytest.mark.parametrize("what", ["retrieved", "scores"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_stored_candidates_without_a_finite_score_are_refused(what: str, value: float) -> None:
    group = zarr.create_group({})
    ids = {"image_ids": np.arange(2), "caption_ids": np.arange(3)}
    for name, array in ids.items():
        group.create_array(name, data=array)
    for way, queries in (("i2t", 2), ("t2i", 3)):
        for part, dtype in (("candidates", np.int64), ("retrieved", float), ("scores", np.float32)):
            array = np.ones((queries, 1), dtype)
            group.create_array(f"{way}_{part}", data=array)
    found = read(Path("s.zarr"), group)
    assert {name: each.places.shape for name, each in found.items()} == {
        "i2t": (2, 1),
        "t2i": (3, 1),
    }
    group[f"t2i_{what}"][1] = value  # type: ignore[index]
    with pytest.raises(
        InputError, match=r"s\.zarr: its candidates t2i do not fit its 2 images and 3"
    ):
        read(Path("s.zarr"), group)
