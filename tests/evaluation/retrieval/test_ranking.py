"""Ranks and recalls against sorting, over ties, types, sizes, maps and block sizes."""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch
import zarr
from sorting import argsort_loops, measure, random_matrix

from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval import Protocol, Relevance, rank
from pipeline.foundation.evaluation.retrieval.blocks import Matrix
from pipeline.foundation.evaluation.retrieval.ranks import Ties
from pipeline.foundation.evaluation.retrieval.relevance import Positives
from pipeline.foundation.evaluation.retrieval.similarity import Directions, EqualRows
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.fusion.combining import QueryByQuery

DIRECTIONS = ("i2t", "t2i")


@pytest.mark.slow
@pytest.mark.parametrize("ties", ["expected", "pessimistic", "optimistic"])
def test_agrees_with_sorting_on_random_matrices(ties: Ties) -> None:
    for seed in range(60):
        scores, owner = random_matrix(seed)
        measured, reference = (
            evaluate(scores, owner, ties=ties).as_dict(),
            measure(scores, owner, ties),
        )
        for direction in DIRECTIONS:
            assert measured[direction] == pytest.approx(reference[direction], abs=1e-9), (
                f"matrix {seed}, {direction}"
            )


@pytest.mark.slow
@pytest.mark.parametrize(("value", "sign"), [(-np.inf, 1), (np.inf, -1)])
def test_what_is_said_of_infinite_fillers_helps(value: float, sign: int) -> None:
    scores = np.random.default_rng(0).standard_normal((4, 12))
    owner = np.repeat(np.arange(4), 3)
    scores[2, 3:] = value
    with pytest.raises(InputError, match=f"is {value}: it cannot be ranked") as raised:
        evaluate(scores, owner)
    said = re.search(r"scored, (.*) ranks|distance, (.*) ranks", str(raised.value))
    assert said is not None
    exec(said[1] or said[2], {"scores": scores, "numpy": np})
    filled = sign * scores
    assert np.isfinite(filled).all()
    assert filled[2, 3:].max() < np.delete(filled[2], slice(3, None)).min()
    assert evaluate(filled, owner).as_dict()["i2t"] == pytest.approx(
        measure(filled, owner, "expected")["i2t"]
    )


def test_agrees_with_the_argsort_loops_without_ties() -> None:
    generator = np.random.default_rng(0)
    for images in (1, 7, 60):
        scores = generator.permutation(images * images * 5).reshape(images, -1).astype(np.float32)
        metrics = evaluate(scores, np.repeat(np.arange(images), 5))
        for direction, expected in argsort_loops(scores).items():
            recalls = [metrics[direction, f"R@{k}"] for k in (1, 5, 10)]
            numbers = [*recalls, np.floor(metrics[direction, "MedR"]), metrics[direction, "MeanR"]]
            assert numbers == pytest.approx(expected)
        assert metrics.tied == {"i2t": 0, "t2i": 0}


@pytest.mark.specification
@pytest.mark.parametrize("right", [{0}, {1, 4}, {0, 2, 5}])
def test_chances_equal_the_share_of_all_orders_of_tied_captions(right: set[int]) -> None:
    scores = np.array([[0.5, 0.5, 0.5, 0.9, 0.5, 0.5, 0.1]])
    owner = np.array([0 if caption in right else -1 for caption in range(7)])
    queries = rank(scores, owner).i2t
    orders = [[3, *tied, 6] for tied in permutations([0, 1, 2, 4, 5])]
    found = np.array([1 + min(order.index(caption) for caption in right) for order in orders])
    for k in range(1, 8):
        assert queries.hits(k) == pytest.approx(np.mean(found <= k))
    assert queries.ranks() == pytest.approx(found.mean())
    assert (queries.ranks("optimistic"), queries.ranks("pessimistic")) == (found.min(), found.max())


@pytest.mark.specification
@pytest.mark.parametrize("value", [0.0, 0.3, -7.0])
def test_a_constant_matrix_scores_exactly_at_chance(value: float) -> None:
    metrics = evaluate(np.full((40, 40), value, np.float16), np.arange(40))
    for way in ("i2t", "t2i"):
        assert [metrics[way, f"R@{k}"] for k in (1, 5, 10)] == [2.5, 12.5, 25.0]
        assert metrics[way, "MedR"] == metrics[way, "MeanR"] == 20.5
        assert metrics.tied[way] == metrics.queries[way] == 40
    assert evaluate(np.full((40, 40), value), np.arange(40), ties="pessimistic").rsum == 0
    assert evaluate(np.full((40, 40), value), np.arange(40), ties="optimistic").rsum == 600


@pytest.mark.specification
def test_duplicated_images_share_their_hits() -> None:
    scores = np.eye(20)
    scores[1] = scores[0] = scores[0] + scores[1]
    metrics = evaluate(scores, np.arange(20))
    # Captions 0 and 1 each find either of two equal images; images 0 and 1 each find either of two
    # captions.
    assert metrics["t2i", "R@1"] == metrics["i2t", "R@1"] == 95.0
    assert metrics["t2i", "R@5"] == 100.0
    assert (metrics.tied["t2i"], metrics.tied["i2t"]) == (2, 2)


def test_blocks_of_any_size_give_the_same_counts() -> None:
    generator = np.random.default_rng(1)
    scores = generator.integers(0, 50, (300, 1000)).astype(np.float32)
    owner = generator.integers(0, 300, 1000)
    whole = rank(scores, owner, block_megabytes=64)
    for megabytes in (1, 0.1, 0.002):
        small = rank(scores, owner, block_megabytes=megabytes)
        for direction in DIRECTIONS:
            for name in ("query", "greater", "equal", "right"):
                expected = getattr(getattr(whole, direction), name)
                np.testing.assert_array_equal(getattr(getattr(small, direction), name), expected)


@pytest.mark.parametrize("candidates", [255, 256, 600, 2048, 5000])
def test_a_query_whose_right_candidate_is_the_last_has_the_last_rank(candidates: int) -> None:
    scores = np.arange(candidates, dtype=np.float32)[:, None].repeat(
        3, 1
    )  # whole blocks of cells above the right one
    assert rank(scores, np.zeros(3, np.int64)).t2i.ranks().tolist() == [candidates] * 3
    owner = np.full(candidates, -1)
    owner[0] = 1
    assert rank(scores.T, owner).i2t.ranks().tolist() == [candidates]


def test_items_without_partner_are_candidates_but_no_queries() -> None:
    scores = np.array([[0.5, 0.9, 0.1], [0.6, 0.2, 0.3]])
    metrics = evaluate(scores, [0, -1, -1])
    assert (metrics.queries["i2t"], metrics.queries["t2i"]) == (1, 1)
    assert (metrics["i2t", "MeanR"], metrics["t2i", "MeanR"]) == (2, 2)
    assert (metrics.images, metrics.captions) == (2, 3)


@pytest.mark.specification
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("place", [(7, 2), (7, 14), (0, 0)])
def test_refuses_what_is_not_finite_with_its_place(
    value: float, kind: type, place: tuple[int, int]
) -> None:
    scores = np.random.default_rng(0).random((10, 20)).astype(kind)
    scores[place] = value
    with pytest.raises(
        InputError, match=rf"row {place[0]} \(image\), column {place[1]} \(caption\) is {value}"
    ):
        evaluate(scores, np.arange(20) // 2, block_megabytes=2e-4)


def test_sums_that_overflow_are_no_infinities() -> None:
    scores = np.full((4, 4), 3e38, np.float32)
    assert evaluate(scores, np.arange(4))["t2i", "R@1"] == 25


def test_refuses_a_nan_in_a_fold_with_its_place_in_the_whole_matrix() -> None:
    scores = np.zeros((50, 250), np.float32)
    scores[32, 161] = np.nan
    with pytest.raises(InputError, match=r"row 32 \(image\), column 161"):
        evaluate(scores, np.repeat(np.arange(50), 5), Protocol("fifths", folds=5))


@pytest.mark.parametrize(
    ("owner", "message"),
    [
        ([0, 1], "expected 3 integers"),
        ([0.0, 1.0, 1.0], "float64"),
        ([0, 1, 2], "caption 2 names row 2, but the matrix has 2 rows"),
        ([0, -2, 1], "caption 1 names row -2"),
        ([-1, -1, -1], "nothing to rank"),
    ],
)
def test_refuses_maps_that_do_not_fit(owner: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate(np.zeros((2, 3)), owner)


@pytest.mark.specification
@pytest.mark.parametrize(
    "scores",
    [
        np.zeros((2, 3), bool),
        np.zeros(3),
        np.zeros((0, 3)),
        np.zeros((2, 3), complex),
        np.zeros((2, 3), object),
        "x",
        7,
    ],
)
def test_refuses_what_is_no_similarity_matrix(scores: object) -> None:
    with pytest.raises(InputError):
        evaluate(scores, [0, 1, 1])


def test_refuses_unknown_rules_and_blocks_of_no_size() -> None:
    with pytest.raises(InputError, match="unknown rule for ties 'fair'"):
        evaluate(np.eye(2), [0, 1], ties="fair")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="block_megabytes"):
        evaluate(np.eye(2), [0, 1], block_megabytes=0)


def test_progress_tells_the_rows_done() -> None:
    reported: list[int] = []
    evaluate(
        np.random.default_rng(0).random((50, 10)),
        np.arange(10),
        block_megabytes=1e-3,
        progress=reported.append,
    )
    assert reported == sorted(reported)
    assert reported[-1] == 50


def test_progress_of_two_matrices_is_that_of_both() -> None:
    reported: list[int] = []
    scores = np.random.default_rng(0).random((50, 10))
    both = Directions(Matrix(scores), Matrix(scores))
    rank(both, np.arange(10), block_megabytes=1e-3, progress=reported.append)
    assert reported == sorted(reported)
    assert (reported[len(reported) // 2 - 1], reported[-1]) == (25, 50)


class RoundedBlocks(Matrix):
    """Cells that are rounded up in blocks, as products of matrices may be, and not as pairs."""

    equal = EqualRows(np.arange(12), np.arange(12))

    def block(self, images: object, captions: object) -> np.ndarray:
        return super().block(images, captions) + 1e-9  # type: ignore[arg-type]


def test_rounding_of_blocks_changes_no_rank_where_the_directions_differ() -> None:
    scores = np.random.default_rng(0).permutation(144).reshape(12, 12).astype(np.float64)
    queries = np.arange(12)
    right_captions = Positives.of_pairs(queries, (queries + 1) % 12, 12)
    right_images = Positives.of_pairs(queries, (queries + 5) % 12, 12)
    found = rank(RoundedBlocks(scores), Relevance.of_directions(right_captions, right_images))
    for way, cells, right in (
        ("i2t", scores, (queries + 1) % 12),
        ("t2i", scores.T, (queries + 5) % 12),
    ):
        best = cells[queries, right]
        ranked = getattr(found, way)
        assert ranked.greater.tolist() == (cells > best[:, None]).sum(1).tolist()
        assert ranked.equal.tolist() == [0] * 12


class EqualCaptions(QueryByQuery):
    """One image, whose first two captions are equal but for rounding."""

    equal = EqualRows(np.array([0]), np.array([0, 0, 1]))

    def queries(self, which: object) -> np.ndarray:
        return np.array([[0.5, 0.5 - 1e-12, 0.4]])


def test_equal_captions_that_are_both_right_are_no_tie_with_a_wrong_one() -> None:
    source = EqualCaptions((1, 3), True, 1000)
    ranked = rank(Directions(source, source), np.array([0, 0, -1])).i2t
    assert (ranked.greater[0], ranked.equal[0], ranked.right[0]) == (0, 0, 2)


def test_takes_tensors_of_any_float() -> None:
    scores = torch.eye(6)
    for kind in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        assert evaluate(scores.to(kind).requires_grad_(), torch.arange(6)).rsum == 600


def test_metrics_are_plain_json_values() -> None:
    metrics = evaluate(np.eye(3), [0, 1, 2]).as_dict()
    ranks = {"R@1": 100.0, "R@5": 100.0, "R@10": 100.0, "MedR": 1.0, "MeanR": 1.0}
    assert metrics == {
        "i2t": ranks,
        "t2i": ranks,
        "RSUM": 600.0,
        "images": 3,
        "captions": 3,
        "captions_unused": 0,
        "queries": {"i2t": 3, "t2i": 3},
        "tied": {"i2t": 0, "t2i": 0},
        "ties": "expected",
        "protocol": "all",
    }


@pytest.mark.parametrize(
    "kind", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64]
)
def test_integers_are_ranked_as_they_are(kind: type, tmp_path: Path) -> None:
    scores = np.random.default_rng(0).integers(0, 100, (20, 100)).astype(kind)
    if scores.itemsize == 8:
        scores += np.array(2**53 - 200).astype(kind)  # neighbours that float32 does not tell apart
    np.save(tmp_path / "s.npy", scores)
    expected = evaluate(scores.astype(np.float64) % 1000, np.arange(100) // 5)
    assert evaluate(tmp_path / "s.npy", np.arange(100) // 5) == expected
    values = zarr.create_array(tmp_path / "s.zarr", data=scores, chunks=(7, 30), compressors=None)
    assert evaluate(values, np.arange(100) // 5) == expected


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1])
def test_integers_that_no_float_holds_are_refused(value: int) -> None:
    scores = np.zeros((2, 2), np.int64)
    scores[1, 0] = value
    with pytest.raises(InputError, match="integers beyond"):
        evaluate(scores, [0, 1])
