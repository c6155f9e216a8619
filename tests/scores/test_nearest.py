"""The nearest vectors: by sorting, by the library, over blocks."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.errors import InputError
from pipeline.scores import nearest as module
from pipeline.scores.nearest import nearest


@pytest.mark.parametrize("library_from", [0, 10**9])
@pytest.mark.parametrize("at_once", [7, 10**6])
@pytest.mark.parametrize("count", [1, 10, 300])
def test_agrees_with_sorting(library_from: int, at_once: int, count: int, monkeypatch: pytest.MonkeyPatch,
                             rng: np.random.Generator) -> None:
    monkeypatch.setattr(module, "LIBRARY_FROM", library_from)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", at_once)
    vectors, query = rng.standard_normal((200, 16)).astype(np.float32), rng.standard_normal(16).astype(np.float32)
    expected = np.argsort(-(vectors.astype(np.float64) @ query))[:count]
    places, products = nearest(query, vectors, count)
    assert np.array_equal(places, expected)
    np.testing.assert_allclose(products, vectors[expected] @ query, rtol=1e-5)


@pytest.mark.parametrize("at_once", [4, 64])
def test_of_equals_the_earlier_come_first(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_AT_ONCE", at_once)
    vectors = np.ones((64, 3), np.float16)
    vectors[5] = 2
    assert nearest(np.ones(3, np.float32), vectors, 4)[0].tolist() == [5, 0, 1, 2]


def test_a_large_gallery_is_searched_by_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIBRARY_FROM", 5)
    monkeypatch.setattr(module, "_by_product", None)  # calling it would fail
    assert nearest(np.ones(2, np.float32), np.eye(6, 2, dtype=np.float32), 2)[1].tolist() == [1, 1]


def test_other_dimensions_are_refused() -> None:
    with pytest.raises(InputError, match=r"expected vectors \[n, 3\], received \[4, 2\]"):
        nearest(np.ones(3, np.float32), np.ones((4, 2), np.float32), 1)
