"""Blocks shared among threads: the same counts whatever their number, the first block's error, no
trace left.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from pipeline.foundation.evaluation.retrieval import Embeddings, rank
from pipeline.foundation.evaluation.retrieval.blocks import (
    PRODUCT_WIDTH,
    TILE_CELLS,
    TILE_WIDTH,
    cut,
    product_blocks,
)
from pipeline.foundation.evaluation.retrieval.workers import share
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.fuse import fuse
from pipeline.judge.systems.scores.system import System


@pytest.fixture(params=[1, 2, 5])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_counts_of_large_blocks_with_ties_are_those_of_plain_comparisons(
    threads: int, rng: np.random.Generator
) -> None:
    images, captions = TILE_CELLS // TILE_WIDTH + 300, 2 * TILE_WIDTH + 77
    scores = rng.integers(0, 40, (images, captions)).astype(np.float32)
    owner = rng.permutation(np.arange(captions) % images)
    ranks = rank(scores, owner, block_megabytes=4)
    positive = scores[owner, np.arange(captions)]
    np.testing.assert_array_equal(ranks.t2i.greater, (scores > positive).sum(0))
    np.testing.assert_array_equal(ranks.t2i.equal, (scores == positive).sum(0) - 1)
    best = np.full(images, -1.0)
    np.maximum.at(best, owner, positive)
    np.testing.assert_array_equal(ranks.i2t.greater, (scores > best[:, None]).sum(1))
    right = np.bincount(owner[positive == best[owner]], minlength=images)
    np.testing.assert_array_equal(ranks.i2t.right, right)
    np.testing.assert_array_equal(ranks.i2t.equal, (scores == best[:, None]).sum(1) - right)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mean", "rank"])
def test_computed_scores_do_not_depend_on_the_threads(
    threads: int, method: str, rng: np.random.Generator
) -> None:
    sides = [
        rng.standard_normal((size, 24)).astype(np.float32) for size in (300, PRODUCT_WIDTH + 301)
    ]
    owner = rng.integers(0, 300, len(sides[1]))
    member = System.of("a", Embeddings(*sides), None, np.arange(300), np.arange(len(owner)))
    ranks = rank(fuse([member], method).scores, owner, block_megabytes=1)
    exact = sides[0].astype(np.float64) @ sides[1].astype(np.float64).T
    np.testing.assert_array_equal(
        ranks.t2i.greater, (exact > exact[owner, np.arange(len(owner))]).sum(0)
    )
    assert not ranks.t2i.equal.any()
    assert torch.get_num_threads() == threads


class Failing:
    """Fails in every block from the fourth on, the later the sooner."""

    begun: list[int]

    def __init__(self, begun: list[int], wait: threading.Event) -> None:
        self.begun, self.wait = begun, wait

    def add(self, rows: slice, columns: slice) -> None:
        self.begun.append(rows.start)
        if rows.start > 3:
            self.wait.set()
        if rows.start >= 3:
            self.wait.wait(0.1)
            raise InputError(f"block {rows.start}")


def test_the_first_blocks_error_is_raised_and_no_more_are_begun(threads: int) -> None:
    begun: list[int] = []
    wait = threading.Event()
    reported: list[int] = []
    with pytest.raises(InputError, match="block 3"):
        share(cut((1000, 1), 1, 1), lambda: Failing(begun, wait), reported.append)
    assert len(begun) < 20
    assert reported == [1, 1, 1]
    assert torch.get_num_threads() == threads
    seen: list[int] = []
    later = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    later.start()
    later.join()
    assert seen == [threads]


@pytest.mark.parametrize(
    ("shape", "cells"),
    [
        ((1, 1), 1),
        ((1, 1), 100),
        ((5000, 25000), 2_000_000),
        ((7, 25010), 100),
        ((7, 25010), 10**6),
        ((100, 3), 1),
        ((100, 3), 17),
    ],
)
def test_blocks_of_products_cover_the_matrix(shape: tuple[int, int], cells: int) -> None:
    area = 0
    for rows, columns in product_blocks(shape, cells):
        area += (rows.stop - rows.start) * (columns.stop - columns.start)
        assert (rows.stop - rows.start) * (columns.stop - columns.start) <= cells
    assert area == shape[0] * shape[1]
