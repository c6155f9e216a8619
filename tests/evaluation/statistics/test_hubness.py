"""How often candidates are found, and how skewed that is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import skew

from pipeline.foundation.evaluation.retrieval import as_similarity
from pipeline.foundation.evaluation.statistics.hubness import hubness
from pipeline.foundation.settings import Evaluate


@pytest.mark.specification
def test_counts_and_their_skewness(rng: np.random.Generator) -> None:
    scores = rng.normal(size=(30, 50)).astype(np.float32)
    scores[4] += 2  # a hub among images
    for direction, queries in (("i2t", scores), ("t2i", scores.T)):
        expected = np.bincount(np.argsort(-queries, 1)[:, :5].ravel(), minlength=queries.shape[1])
        found = hubness(
            as_similarity(scores), direction, Evaluate(resamples=1, seed=0, block_megabytes=0.01), 5
        )  # type: ignore[arg-type]
        assert found.skewness == pytest.approx(skew(expected))
        assert (found.most, found.never, found.candidates) == (
            expected.max(),
            (expected == 0).sum(),
            len(expected),
        )
        assert found.mean == pytest.approx(5 * len(queries) / len(expected))
    assert found.most > 30


@pytest.mark.parametrize(("k", "each"), [(1, 1), (10, 4)])
def test_equally_found_candidates_have_no_hubs(k: int, each: int) -> None:
    settings = Evaluate(resamples=1, seed=0, block_megabytes=32)
    assert hubness(as_similarity(np.eye(4, dtype=np.float32)), "t2i", settings, k) == (
        0.0,
        each,
        each,
        0,
        4,
    )


def test_the_last_candidate_counts_though_it_is_never_found() -> None:
    scores = np.array([[3, 2, 1, 0], [2, 3, 1, 0], [2, 1, 3, 0]], np.float32)
    settings = Evaluate(resamples=1, seed=0, block_megabytes=32)
    counted = hubness(as_similarity(scores), "i2t", settings, 1)
    assert (counted.never, counted.candidates) == (1, 4)
    assert counted.mean == 0.75
    assert counted.skewness == pytest.approx(skew([1, 1, 1, 0]))
