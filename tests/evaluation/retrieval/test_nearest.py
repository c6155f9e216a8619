"""The nearest vectors: by sorting, for one query and many, over blocks, in float16 and float32."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.foundation.evaluation.retrieval import nearest as module
from pipeline.foundation.evaluation.retrieval.nearest import Exact
from pipeline.foundation.evaluation.retrieval.top import Top
from pipeline.foundation.parts.errors import InputError


def nearest(queries: np.ndarray, vectors: np.ndarray, count: int) -> Top:
    return Exact(vectors).top(queries, count)


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_agrees_with_sorting(
    kind: type,
    threads: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
    rng: np.random.Generator,
) -> None:
    for name, value in {"CONVERTED": 13, "QUERIES": 3, "EXACT": 100}.items():
        monkeypatch.setattr(module, name, value)
    vectors = rng.standard_normal((200, 16)).astype(kind)
    for case in product([1, 2], [1, 5], [35, 10**6], [1, 10, 300]):
        used, queries, products, count = case
        threads(used)
        monkeypatch.setattr(module, "PRODUCTS", products)
        asked = rng.standard_normal((queries, 16)).astype(np.float32)
        exact = asked.astype(np.float64) @ vectors.astype(np.float64).T
        expected = np.argsort(-exact, axis=1)[:, :count]
        places, found = nearest(asked, vectors, count)
        assert np.array_equal(places, expected), case
        assert found.dtype == np.float64
        of_best = np.take_along_axis(exact, expected, 1)
        np.testing.assert_allclose(found, of_best, rtol=1e-12, err_msg=str(case))
        assert np.array_equal(Exact(vectors).places(asked, count), expected), case


@pytest.mark.parametrize("products", [4, 64])
@pytest.mark.parametrize("queries", [1, 3])
def test_of_equals_the_earlier_come_first(
    products: int, queries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PRODUCTS", products)
    vectors = np.ones((64, 3), np.float16)
    vectors[5] = 2
    assert (
        nearest(np.ones((queries, 3), np.float32), vectors, 4)[0].tolist()
        == [[5, 0, 1, 2]] * queries
    )


@pytest.mark.parametrize("queries", [1, 2])
def test_what_float32_cannot_tell_apart_is_told_apart(
    queries: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors whose products differ by less than float32 rounds, in an order that must not
    decide.
    """
    monkeypatch.setattr(module, "PRODUCTS", 50 * queries)
    query = rng.standard_normal(256).astype(np.float32)
    vectors = np.tile(rng.standard_normal(256).astype(np.float32) / 16, (400, 1))
    vectors[:, 0] = rng.permutation(
        np.nextafter(vectors[0, 0], 9, dtype=np.float32) * (1 + np.arange(400) * 1.2e-7)
    )
    expected = np.argsort(-(vectors.astype(np.float64) @ query), kind="stable")[:7]
    assert (
        nearest(np.tile(query, (queries, 1)), vectors, 7)[0].tolist()
        == [expected.tolist()] * queries
    )


@pytest.mark.slow
def test_an_exact_product_between_rounded_ones_changes_no_order(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later blocks bring rounded products that are within their errors of several exact ones of
    earlier blocks.
    """
    monkeypatch.setattr(module, "PRODUCTS", 3 * 6)
    for _ in range(20):
        query = rng.standard_normal((3, 64)).astype(np.float32)
        vectors = (query[0] / 8 + rng.standard_normal((60, 64)) * 3e-6).astype(np.float32)
        exact = np.stack(
            [
                np.einsum("ij,j->i", vectors.astype(np.float64), each.astype(np.float64))
                for each in query
            ]
        )
        assert np.array_equal(
            Exact(vectors).places(query, 5), np.argsort(-exact, axis=1, kind="stable")[:, :5]
        )


@pytest.mark.parametrize("products", [14, 10**6])
@pytest.mark.parametrize(("queries", "longest"), [(1, 1), (1, 1000), (2, 1), (2, 1000)])
def test_products_that_are_off_by_their_whole_rounding_change_nothing(
    products: int,
    queries: int,
    longest: int,
    monkeypatch: pytest.MonkeyPatch,
    rng: np.random.Generator,
) -> None:
    """The best come out too small by all that rounding may change, the others too large, on any
    processor.
    """
    angle = rng.permutation(60) / 500
    length = np.where(np.arange(60) % 2, 1, longest)
    vectors = (length * np.stack([np.cos(angle), np.sin(angle)])).T.astype(np.float32)
    query, rounding = np.array([[1, 0]] * queries, np.float32), 0.05
    exact = vectors.astype(np.float64) @ query[0]
    best = np.argsort(-exact)[:9]

    def rounded(queries: np.ndarray, block: np.ndarray) -> tuple[torch.Tensor, float]:
        products = block.astype(np.float64) @ query[0]
        error = 0.999 * rounding * np.linalg.norm(block, axis=1)
        off = np.where(products >= exact[best[-1]] - 1e-9, -error, error)
        return torch.from_numpy(products + off).float().repeat(len(queries), 1), rounding

    monkeypatch.setattr(module, "PRODUCTS", products)
    monkeypatch.setattr(module, "_products", rounded)
    monkeypatch.setattr(module, "ALIKE", 1)  # or float64 is tried, which needs no bound
    assert nearest(query, vectors, 9)[0].tolist() == [best.tolist()] * queries


def test_float16_products_too_large_for_float16_are_found(rng: np.random.Generator) -> None:
    vectors = (rng.standard_normal((60, 16)) * 100).astype(np.float16)
    query = (rng.standard_normal((1, 16)) * 1e4).astype(np.float32)
    expected = np.argsort(-(vectors.astype(np.float64) @ query[0]))[:5]
    assert nearest(query, vectors, 5)[0].tolist() == [expected.tolist()]


def test_what_float16_cannot_tell_apart_is_told_apart(rng: np.random.Generator) -> None:
    """Thousands of unit vectors close together: first products are rounded to one of a few
    numbers.
    """
    vectors = rng.standard_normal(64) + rng.standard_normal((3000, 64)) / 100
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    query = (vectors[7] + rng.standard_normal(64) / 50).astype(np.float32)[None]
    exact = vectors.astype(np.float64) @ query[0]
    assert len(np.unique(exact.astype(np.float16))) < 100
    assert nearest(query, vectors, 20)[0].tolist() == [
        np.argsort(-exact, kind="stable")[:20].tolist()
    ]


def test_a_memory_map_is_searched_as_it_lies(tmp_path: Any, rng: np.random.Generator) -> None:
    vectors = rng.standard_normal((50, 8)).astype(np.float32)
    np.save(tmp_path / "v.npy", vectors)
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    assert np.array_equal(nearest(vectors[:3], mapped, 5)[0], nearest(vectors[:3], vectors, 5)[0])


def test_other_dimensions_are_refused() -> None:
    with pytest.raises(InputError, match=r"expected vectors \[n, 3\], received \[4, 2\]"):
        nearest(np.ones((1, 3), np.float32), np.ones((4, 2), np.float32), 1)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("queries", [1, 2])
def test_a_vector_that_is_not_finite_is_refused_with_its_place(
    value: float, queries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PRODUCTS", 3 * queries)
    vectors = np.ones((9, 3), np.float32)
    vectors[7, 1] = value
    with pytest.raises(InputError, match="vector 7 holds a NaN or infinity"):
        nearest(np.ones((queries, 3), np.float32), vectors, 2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("queries", [1, 3])
def test_vectors_of_any_length_are_ranked_by_their_products(
    kind: type, queries: int, rng: np.random.Generator
) -> None:
    """All of them long and nearly one, and a long one among short ones at right angles to the
    query, whose product float32 rounds by more than the others differ.
    """
    for _ in range(10):
        asked = np.zeros((queries, 256), np.float32)
        asked[:, 0] = 1
        asked[:, 1:] = rng.standard_normal(255) / 4
        alike = 2e4 * (rng.standard_normal(256) / 16 + 1e-7 * rng.standard_normal((800, 256)))
        mixed = np.zeros((800, 256))
        mixed[:, 0] = 1e-3 * rng.integers(0, 3, 800)
        across = rng.standard_normal((60, 255))
        unit = asked[0, 1:] / np.linalg.norm(asked[0, 1:])
        mixed[100:160, 1:] = 4e3 * (across - np.outer(across @ unit, unit))
        for vectors in (alike.astype(kind), mixed.astype(kind)):
            exact = np.stack(
                [
                    np.einsum("ij,j->i", vectors.astype(np.float64), query.astype(np.float64))
                    for query in asked
                ]
            )
            expected = np.argsort(-exact, axis=1, kind="stable")[:, :5]
            index = Exact(vectors)
            assert np.array_equal(index.places(asked, 5), expected)
            assert np.array_equal(index.places(asked, 5), expected), "a second time"


def test_of_vectors_that_are_nearly_one_the_nearest_are_still_found(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A head that embeds all alike: in float32 any of the vectors may be the nearest, in float64
    few.
    """
    multiplied, before = [], module._Best._multiplied

    def counting(best: Any, pairs: Any) -> Any:
        multiplied.append(len(pairs.query))
        return before(best, pairs)

    monkeypatch.setattr(module._Best, "_multiplied", counting)
    vectors = (rng.standard_normal(64) / 8 + rng.standard_normal((900, 64)) * 1e-6).astype(
        np.float32
    )
    asked = vectors[:20]
    exact = np.stack(
        [
            np.einsum("ij,j->i", vectors.astype(np.float64), query.astype(np.float64))
            for query in asked
        ]
    )
    assert np.array_equal(
        nearest(asked, vectors, 5)[0], np.argsort(-exact, axis=1, kind="stable")[:, :5]
    )
    assert sum(multiplied) < 20 * 50
