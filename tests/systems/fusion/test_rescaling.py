"""Z-scores and reciprocal ranks against the plain formulas; what is read how often, and in how much
memory.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import zarr
from torch import Tensor

from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval import (
    Embeddings,
    Protocol,
    as_similarity,
)
from pipeline.foundation.evaluation.retrieval.blocks import Matrix
from pipeline.foundation.evaluation.retrieval.similarity import Directions, EqualRows
from pipeline.foundation.evaluation.retrieval.zarr_matrix import ZarrMatrix
from pipeline.judge.systems.fusion import methods as module, standardised
from pipeline.judge.systems.fusion.methods import CombMNZ, CombSum, RankFusion
from pipeline.judge.systems.fusion.standardised import ZScores, statistics


def standardise(scores: Tensor) -> Tensor:
    """Mean 0 and standard deviation 1 along the last dimension; 0 where all scores are equal."""
    scores = scores.double()
    constant = scores.amin(-1, keepdim=True) == scores.amax(-1, keepdim=True)
    deviation = scores - scores.mean(-1, keepdim=True)
    spread = deviation.square().mean(-1, keepdim=True).sqrt()
    return (deviation / spread.masked_fill(constant, 1)).masked_fill(constant, 0)


def reciprocal_ranks(scores: Tensor, offset: float = 60) -> Tensor:
    """1 / (offset + rank) along the last dimension, where tied scores share their mean rank."""
    scores = scores.contiguous()
    ascending = scores.sort(-1).values
    up_to = torch.searchsorted(ascending, scores, right=True)
    below = torch.searchsorted(ascending, scores)
    return 1 / (offset + scores.shape[-1] - (up_to + below - 1).double() / 2)


def scale(scores: Tensor) -> Tensor:
    """From 0 to 1 along the last dimension; 0 where all scores are equal."""
    scores = scores.double()
    least, span = (
        scores.amin(-1, keepdim=True),
        scores.amax(-1, keepdim=True) - scores.amin(-1, keepdim=True),
    )
    return torch.where(span > 0, (scores - least) / torch.where(span > 0, span, 1), 0)


KINDS = {
    "zscore": (ZScores, standardise),
    "rank": (RankFusion, reciprocal_ranks),
    "combsum": (CombSum, scale),
}


def matrices(rng: np.random.Generator, shape: tuple[int, int]) -> list[np.ndarray]:
    """Many ties and both signs of zero; none; a large mean beside small deviations; float64;
    float16.
    """
    levels = rng.integers(-3, 3, shape).astype(np.float32)
    levels[levels == 0] *= rng.choice([-1.0, 1.0], int((levels == 0).sum()))
    levels[2], levels[:, 5] = 0.25, -1
    return [
        levels,
        rng.standard_normal(shape).astype(np.float32),
        1e4 + rng.random(shape).astype(np.float32),
        rng.standard_normal(shape) * 1e-9,
        rng.standard_normal(shape).astype(np.float16),
    ]


@pytest.mark.specification
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("direction", ["i2t", "t2i"])
@pytest.mark.parametrize("block_bytes", [10**8, 5000])
def test_scores_are_those_of_the_plain_formulas(
    name: str, direction: Any, block_bytes: int, tmp_path: Path, rng: np.random.Generator
) -> None:
    fusion, formula = KINDS[name]
    every, weights = matrices(rng, (70, 90)), [0.1, 0.3, 0.05, 0.35, 0.2]
    sources: list[Any] = [Matrix(each) for each in every]
    stored = zarr.create_array(
        tmp_path / "s", data=every[1], chunks=(32, 40), compressors=None, filters=None
    )
    sources[1] = ZarrMatrix(stored)
    expected = sum(
        weight
        * (
            formula(torch.from_numpy(each))
            if direction == "i2t"
            else formula(torch.from_numpy(each).T).T
        )
        for weight, each in zip(weights, every, strict=True)
    )
    scores = fusion(sources, weights).direction(direction, block_bytes)
    found = np.full((70, 90), np.nan)
    for rows, columns in scores.grid((70, 90), block_bytes):
        found[rows, columns] = scores.block(rows, columns)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    # A pair is the very number of the grid: a right one neither beats itself nor ties by accident.
    images, captions = rng.integers(0, 70, 200), rng.integers(0, 90, 200)
    assert np.array_equal(scores.pairs(images, captions), found[images, captions])
    some = np.array([3, 60, 2])
    assert np.array_equal(scores.block(some, slice(0, 90)), found[some])


def test_moments_lose_no_digits(rng: np.random.Generator) -> None:
    values = 1e6 * rng.standard_normal((40, 1)) + rng.standard_normal((40, 60)) + 1e7
    rows, columns = (lines.moments() for lines in statistics(Matrix(values), 4000))
    np.testing.assert_allclose(rows.mean, values.mean(1), rtol=1e-15)
    np.testing.assert_allclose(
        1 / rows.inverse, values.std(1), rtol=1e-9
    )  # of numbers with 8 digits after the comma
    np.testing.assert_allclose(1 / columns.inverse, values.std(0), rtol=1e-12)


def test_moments_are_of_all_parts_whichever_thread_read_them(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dealt(blocks: Any, make: Any, finished: Any) -> list[Any]:
        workers = [make() for _ in range(3)]
        for number, (rows, columns) in enumerate(blocks):
            workers[number % 3].add(rows, columns)
        return workers

    monkeypatch.setattr(standardised, "share", dealt)
    values = rng.standard_normal((40, 60))
    for axis, lines in enumerate(statistics(Matrix(values), 4000)):
        along = 1 - axis
        assert lines.count.tolist() == [values.shape[along]] * values.shape[axis]
        np.testing.assert_allclose(lines.mean, values.mean(along), atol=1e-12)
        np.testing.assert_allclose(1 / lines.moments().inverse, values.std(along), rtol=1e-12)
        np.testing.assert_array_equal(lines.ranges().mean, values.min(along))
        np.testing.assert_allclose(1 / lines.ranges().inverse, np.ptp(values, along), rtol=1e-12)


class Counted(Matrix):
    """A source that notes how many cells are read, and the largest block."""

    read = largest = 0

    def block(self, images: Any, captions: Any) -> np.ndarray:
        block = super().block(images, captions)
        self.read += block.size
        self.largest = max(self.largest, block.size)
        return block


@pytest.mark.parametrize(("name", "passes"), [("zscore", 3), ("rank", 2)])
def test_each_cell_is_read_once_a_pass_and_blocks_are_bounded(
    name: str, passes: int, rng: np.random.Generator
) -> None:
    sources = [Counted(rng.random((300, 600)).astype(np.float32)) for _ in range(2)]
    evaluate(KINDS[name][0](sources, [0.5, 0.5]), np.arange(600) // 2, block_megabytes=0.5)
    assert [source.read for source in sources] == [passes * 180_000] * 2
    assert max(source.largest for source in sources) * 4 <= 5e5


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("megabytes", [32, 0.02])
def test_metrics_are_those_of_the_whole_matrices(
    name: str, megabytes: float, rng: np.random.Generator
) -> None:
    fusion, formula = KINDS[name]
    every, owner = (
        [rng.integers(0, 9, (60, 180)).astype(np.float32) for _ in range(2)],
        rng.integers(-1, 60, 180),
    )
    found = evaluate(
        fusion([Matrix(each) for each in every], [0.5, 0.5]), owner, block_megabytes=megabytes
    )
    sums = [
        sum(formula(torch.from_numpy(each if by_image else each.T)) for each in every) / 2
        for by_image in (True, False)
    ]
    assert found.as_dict()["i2t"] == evaluate(sums[0], owner).as_dict()["i2t"]
    assert found.as_dict()["t2i"] == evaluate(sums[1].T, owner).as_dict()["t2i"]


@pytest.mark.slow
def test_duplicates_of_computed_members_tie_by_rank_whatever_the_blocks(
    rng: np.random.Generator,
) -> None:
    images = rng.standard_normal((400, 333)).astype(np.float32)
    images[200:] = images[:200]
    captions = images + rng.standard_normal(images.shape).astype(np.float32) / 100
    captions[200:] = captions[:200]
    for megabytes in (32, 0.05):
        metrics = evaluate(
            RankFusion([Embeddings(images, captions)], [1]),
            np.arange(400),
            block_megabytes=megabytes,
        )
        assert metrics["i2t", "R@1"] == metrics["t2i", "R@1"] == 50
        assert (metrics.tied["i2t"], metrics.tied["t2i"]) == (400, 400)


def test_float64_scores_are_ranked_in_all_their_digits() -> None:
    scores = 1 + np.array([[3.0, 1, 2, 2]]) * 1e-12
    assert np.array_equal(module.reciprocal_ranks(scores), [[1 / 61, 1 / 64, 1 / 62.5, 1 / 62.5]])


@pytest.mark.parametrize("name", KINDS)
def test_a_fold_is_scored_among_its_own(name: str, rng: np.random.Generator) -> None:
    fusion = KINDS[name][0]
    scores, owner = [rng.random((40, 80)).astype(np.float32) for _ in range(2)], np.arange(80) // 2
    folds = evaluate(
        fusion([Matrix(each) for each in scores], [0.5, 0.5]), owner, Protocol("two", folds=2)
    ).folds
    half = fusion([Matrix(each[20:, 40:]) for each in scores], [0.5, 0.5])
    assert folds[1].as_dict()["t2i"] == evaluate(half, owner[40:] - 20).as_dict()["t2i"]


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
@pytest.mark.parametrize("listed", [3, 20, 1000])
def test_combmnz_counts_the_systems_that_list_a_candidate(
    direction: Any, listed: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr("pipeline.judge.systems.fusion.methods.LISTED", listed)
    every, weights = matrices(rng, (40, 60))[:3], [0.5, 0.3, 0.2]
    fused = CombMNZ([Matrix(each) for each in every], weights).direction(direction, 20_000)
    total, systems = np.zeros((40, 60)), np.zeros((40, 60))
    for each, weight in zip(every, weights, strict=True):
        for query in range(40 if direction == "i2t" else 60):
            at = (query, slice(None)) if direction == "i2t" else (slice(None), query)
            scores = each[at].astype(np.float64)
            kept = scores >= np.sort(scores)[-min(listed, len(scores))]
            least, greatest = scores[kept].min(), scores.max()
            scaled = (
                (scores - least) / (greatest - least) if greatest > least else np.ones(len(scores))
            )
            total[at] += weight * np.where(kept, scaled, 0)
            systems[at] += kept
    np.testing.assert_allclose(fused.block(slice(0, 40), slice(0, 60)), total * systems, rtol=1e-12)
    pairs = rng.integers(0, 40, 30), rng.integers(0, 60, 30)
    np.testing.assert_array_equal(
        fused.pairs(*pairs), fused.block(slice(0, 40), slice(0, 60))[pairs]
    )


@pytest.mark.parametrize(("place", "systems"), [(99, 2), (100, 1)])
def test_combmnz_takes_the_best_hundred_of_each_system(place: int, systems: int) -> None:
    """A candidate that is first in one system and stands at a place, from 0, in the other."""
    first, other = -np.arange(150.0)[None], -np.arange(150.0)[None]
    other[0, [0, place]] = other[0, [place, 0]]
    fused = CombMNZ([Matrix(first), Matrix(other)], [0.5, 0.5])
    found = fused.direction("i2t", 1 << 20).block(slice(None), slice(None))[0, 0]
    assert found == pytest.approx(0.5 * systems)


def test_scores_that_differ_by_less_than_a_square_can_hold_are_equal() -> None:
    rows, columns = statistics(Matrix(np.array([[0, 1e-200, 0], [0, 1, 2]])), 4000)
    assert rows.moments().inverse.tolist() == [0, pytest.approx(1.5**0.5)]
    assert np.isfinite(columns.moments().inverse).all()


def test_a_system_of_two_matrices_is_standardised_by_that_of_the_direction(
    rng: np.random.Generator,
) -> None:
    of_images, of_captions = rng.random((2, 4, 6))
    both = Directions(as_similarity(of_images), as_similarity(of_captions))  # type: ignore[arg-type]
    fused = ZScores([both, both], [0.5, 0.5])
    whole = slice(0, 4), slice(0, 6)
    found = {name: fused.direction(name, 2**20).block(*whole) for name in ("i2t", "t2i")}
    np.testing.assert_allclose(found["i2t"], standardise(torch.from_numpy(of_images)))
    np.testing.assert_allclose(found["t2i"], standardise(torch.from_numpy(of_captions).T).T)


def test_a_query_of_equal_scores_is_constant_though_their_mean_is_rounded() -> None:
    """The mean of seven times 0.1 is not 0.1; nothing is divided by that difference."""
    for value in (0.1, 0.7, 1e-3):
        rounded = False
        for count in range(2, 40):
            row = np.full((1, count), value)
            rounded |= bool(row.mean() != value)
            for block_bytes in (10**6, 40):
                of_row, _ = statistics(Matrix(row), block_bytes)
                _, of_column = statistics(Matrix(row.T), block_bytes)
                for lines in (of_row, of_column):
                    assert lines.moments().inverse.tolist() == [0], (value, count)
                    assert lines.ranges().inverse.tolist() == [0], (value, count)
        assert rounded, value


def test_equal_queries_are_scaled_by_the_same_numbers() -> None:
    """Rows 0 and 2 and columns 1 and 3 are equal, and were measured with a rounding between."""
    equal = EqualRows(np.array([5, 6, 5]), np.array([0, 1, 2, 1]))
    source: Any = SimpleNamespace(equal=equal)
    for side, first in ((0, [0, 1, 0]), (1, [0, 1, 2, 1])):
        count = len(first)
        mean: Any = 0.1 + 1e-16 * np.arange(count) + np.arange(count)
        moments = standardised.Moments(mean, 1 / mean)
        found = standardised._same_of_equals(moments, source, side)
        assert found.mean.tolist() == mean[first].tolist()
        assert found.inverse.tolist() == (1 / mean)[first].tolist()


@pytest.mark.parametrize("shape", [(40, 60), (7, 60), (40, 11), (1, 1)])
@pytest.mark.parametrize("block_bytes", [1, 5000, 10**8])
def test_a_part_of_a_matrix_is_cut_into_blocks_of_whole_queries_within_it(
    shape: tuple[int, int], block_bytes: int, rng: np.random.Generator
) -> None:
    for direction, along in (("i2t", 1), ("t2i", 0)):
        fused = RankFusion([Matrix(rng.random((40, 60)))], [1])
        scores = fused.direction(direction, block_bytes)  # type: ignore[arg-type]
        covered = np.zeros((40, 60), int)
        for block in scores.grid(shape, block_bytes):
            assert [part.stop <= size for part, size in zip(block, shape, strict=True)] == [
                True
            ] * 2
            assert (block[along].start, block[along].stop) == (0, shape[along])
            covered[block] += 1
        assert (covered[: shape[0], : shape[1]] == 1).all()
        assert covered.sum() == shape[0] * shape[1]
