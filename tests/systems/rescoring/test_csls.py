"""CSLS by its definition, whatever the blocks."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.foundation.evaluation.retrieval import Similarity, as_similarity
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems import rescoring
from pipeline.judge.systems.rescoring import corrections
from pipeline.judge.systems.rescoring.bank import of_test


def rescored(scores: np.ndarray, **options: int) -> Similarity:
    source: Similarity = as_similarity(scores)  # type: ignore[assignment]
    return rescoring.build("csls", **options).rescore(source, of_test(source, lambda: ([], [])))  # type: ignore[return-value]


@pytest.mark.specification
@pytest.mark.parametrize("block_bytes", [1, 3 * 8 * 20, 2**20])
def test_is_its_definition(
    block_bytes: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corrections, "BLOCK_BYTES", block_bytes)
    scores = rng.normal(size=(7, 20)).astype(np.float32)
    found = rescored(scores, neighbours=3)
    rows = np.sort(scores, 1)[:, -3:].mean(1, keepdims=True)
    columns = np.sort(scores, 0)[-3:].mean(0, keepdims=True)
    np.testing.assert_allclose(
        found.block(slice(0, 7), slice(0, 20)), 2 * scores - rows - columns, atol=1e-6
    )
    np.testing.assert_allclose(
        found.pairs(np.array([6, 2]), np.array([19, 0])),
        (2 * scores - rows - columns)[[6, 2], [19, 0]],
        atol=1e-6,
    )


def test_a_hub_is_no_longer_everybodys_nearest() -> None:
    scores = np.array([[0.55, 0.2, 0.2], [0.6, 0.6, 0.6], [0.2, 0.2, 0.55]], np.float32)
    found = rescored(scores, neighbours=3)
    assert scores.argmax(0).tolist() == [1, 1, 1]
    assert found.block(slice(0, 3), slice(0, 3)).argmax(0)[[0, 2]].tolist() == [0, 2]


def test_more_neighbours_than_there_are_and_none() -> None:
    scores = np.eye(2, dtype=np.float32)
    found = rescored(scores)
    np.testing.assert_allclose(found.block(slice(0, 2), slice(0, 2)), [[1, -1], [-1, 1]])
    with pytest.raises(
        InputError, match="neighbours: Input should be greater than or equal to 1, got 0"
    ):
        rescoring.build("csls", neighbours=0)


def test_one_candidate_more_than_neighbours_is_no_neighbour() -> None:
    scores = np.array([[0.9, 0.8, 0.1], [0.7, 0.6, 0.5], [0.4, 0.3, 0.2]], np.float32)
    greatest_two_of_rows = np.array([[0.85], [0.65], [0.35]])
    greatest_two_of_columns = np.array([[0.8, 0.7, 0.35]])
    np.testing.assert_allclose(
        rescored(scores, neighbours=2).block(slice(0, 3), slice(0, 3)),
        2 * scores - greatest_two_of_rows - greatest_two_of_columns,
        atol=1e-6,
    )
