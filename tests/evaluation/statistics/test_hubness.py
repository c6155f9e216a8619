"""How often candidates are found, and how skewed that is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import skew

from pipeline.evaluation.retrieval import as_similarity
from pipeline.evaluation.statistics.hubness import hubness, occurrences


def test_counts_and_their_skewness(rng: np.random.Generator) -> None:
    scores = rng.normal(size=(30, 50)).astype(np.float32)
    scores[4] += 2  # a hub among images
    for direction, queries in (("i2t", scores), ("t2i", scores.T)):
        counts = occurrences(as_similarity(scores), direction, 5, 0, block_megabytes=0.01)  # type: ignore[arg-type]
        expected = np.bincount(np.argsort(-queries, 1)[:, :5].ravel(), minlength=queries.shape[1])
        np.testing.assert_array_equal(counts, expected)
        found = hubness(counts)
        assert found.skewness == pytest.approx(skew(expected))
        assert (found.most, found.never, found.candidates) == (expected.max(), (expected == 0).sum(), len(expected))
        assert found.mean == pytest.approx(5 * len(queries) / len(expected))
    assert found.most > 30


def test_equally_found_candidates_have_no_hubs() -> None:
    counts = occurrences(as_similarity(np.eye(4, dtype=np.float32)), "t2i", 1, 0)
    assert hubness(counts) == (0.0, 1, 1.0, 0, 4)
    every = occurrences(as_similarity(np.eye(4, dtype=np.float32)), "t2i", 10, 0)
    assert every.tolist() == [4, 4, 4, 4]
