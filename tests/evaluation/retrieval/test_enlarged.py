"""A pool with distractors: as the whole product with captions of no image, computed only where it
is asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sorting import noisy_pairs

from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval import Embeddings, Protocol
from pipeline.foundation.evaluation.retrieval.embeddings import Enlarged, Joined
from pipeline.foundation.parts.errors import InputError


def pools(sizes: tuple[int, ...], noise: float = 1.5) -> list[tuple[np.ndarray, np.ndarray]]:
    return [noisy_pairs(size, 3, noise, seed) for seed, size in enumerate(sizes)]


@pytest.mark.parametrize("megabytes", [64, 0.01])
@pytest.mark.parametrize("sizes", [(30,), (30, 50), (30, 1, 80)])
def test_it_is_the_whole_product_with_captions_of_no_image(
    sizes: tuple[int, ...], megabytes: float
) -> None:
    sides = pools(sizes)
    sides[-1][0][0], sides[-1][1][1] = (
        sides[0][0][3],
        sides[0][1][5],
    )  # a query's own photograph, another's caption
    enlarged = Enlarged(Embeddings(*sides[0]), [Embeddings(*side) for side in sides[1:]])
    whole = Embeddings(*(np.concatenate(parts) for parts in zip(*sides, strict=True)))
    owner = enlarged.caption_image(np.repeat(np.arange(30), 3))
    reported: list[int] = []
    measured = evaluate(enlarged, owner, block_megabytes=megabytes, progress=reported.append)
    assert measured.as_dict() == evaluate(whole, owner).as_dict()
    assert (measured.images, measured.queries["i2t"], measured.queries["t2i"]) == (
        sum(sizes),
        30,
        90,
    )
    assert measured.tied["t2i"] == (
        3 if len(sizes) > 1 else 6
    )  # without distractors the other photograph asks as well
    assert reported[-1] == sum(sizes)


def test_what_is_not_asked_for_is_not_computed() -> None:
    own, other = (Embeddings(*side) for side in pools((30, 500)))
    enlarged = Enlarged(own, [other])
    visited = np.zeros(enlarged.shape, int)
    for rows, columns in enlarged.grid(enlarged.shape, 4000):
        visited[rows, columns] += 1
    assert visited[:30].all()
    assert visited[:, :90].all()
    assert visited.max() == 1
    assert not visited[30:, 90:].any()
    assert enlarged.cells_computed == visited.sum()


@pytest.mark.specification
def test_more_distractors_never_raise_a_recall() -> None:
    sides = [Embeddings(*side) for side in pools((40, 100, 400))]
    sums = []
    for count in range(3):
        enlarged = Enlarged(sides[0], sides[1 : count + 1])
        sums.append(evaluate(enlarged, enlarged.caption_image(np.repeat(np.arange(40), 3))).rsum)
    assert sums == sorted(sums, reverse=True)
    assert sums[0] > sums[2]


@pytest.mark.parametrize(
    "index",
    [
        slice(0, 9),
        slice(2, 4),
        slice(4, 8),
        (slice(None), slice(None, None, 2)),
        np.array([8, 0, 3, 3, 5]),
    ],
)
def test_joined_arrays_are_read_like_one(index: Any) -> None:
    parts = [np.arange(12.0).reshape(3, 4), np.empty((0, 4)), np.arange(24.0).reshape(6, 4) + 100]
    assert np.array_equal(Joined(parts)[index], np.concatenate(parts)[index])


def test_other_vectors_and_parts_of_the_pool_are_refused() -> None:
    own, other = (Embeddings(*side) for side in pools((30, 6)))
    with pytest.raises(InputError, match="expected embeddings of dimension 16, received 4"):
        Enlarged(own, [Embeddings(np.ones((2, 4), np.float32), np.ones((2, 4), np.float32))])
    with pytest.raises(InputError, match="expected float32, received float16"):
        Enlarged(own, [Embeddings(np.ones((2, 16), np.float16), np.ones((2, 16), np.float16))])
    enlarged = Enlarged(own, [other])
    with pytest.raises(InputError, match="is measured whole"):
        evaluate(
            enlarged,
            enlarged.caption_image(np.repeat(np.arange(30), 3)),
            Protocol("halves", folds=2),
        )
