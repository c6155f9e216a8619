"""Ties by position against stable sorting, for many ties and several right candidates."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.foundation.evaluation.retrieval import Relevance, as_similarity, rank
from pipeline.foundation.evaluation.retrieval.positions import by_position


@pytest.mark.specification
@pytest.mark.parametrize("last_first", [False, True])
def test_ranks_are_those_of_a_stable_sort(last_first: bool, rng: np.random.Generator) -> None:
    scores = rng.integers(0, 4, (12, 30)).astype(np.float32)
    right = rng.random((12, 30)) < 0.15
    image, caption = np.nonzero(right)
    source = as_similarity(scores)
    ranks = rank(source, Relevance.of_pairs(image, caption, (12, 30)))
    found = by_position(source, ranks, last_first, block_bytes=1000)
    for queries, values, truth in ((found.i2t, scores, right), (found.t2i, scores.T, right.T)):
        assert not queries.equal.any()
        for query, place in zip(queries.query, queries.ranks() - 1, strict=True):
            order = (
                np.argsort(values[query], kind="stable")[::-1]
                if last_first
                else np.argsort(-values[query], kind="stable")
            )
            assert place == np.flatnonzero(truth[query][order])[0]


def test_without_ties_nothing_changes(rng: np.random.Generator) -> None:
    source = as_similarity(rng.random((6, 18)))
    ranks = rank(source, np.arange(18) // 3)
    found = by_position(source, ranks, last_first=True)
    assert (found.i2t.ranks() == ranks.i2t.ranks()).all()
    assert (found.t2i.ranks() == ranks.t2i.ranks()).all()
