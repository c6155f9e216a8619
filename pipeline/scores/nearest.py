"""The nearest vectors of a query, exactly, block by block."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import InputError

Floats = npt.NDArray[np.float32]

ROWS_AT_ONCE = 65_536
# From so many vectors on faiss searches, where it is installed: it keeps the best while it multiplies. Either is exact.
LIBRARY_FROM = 200_000


def nearest(query: Floats, vectors: npt.NDArray[Any], count: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """The places [k] of the `count` vectors with the largest inner product with the query, largest first, and the
    products [k] float32; of equals the earlier first. k is less than count where there are fewer vectors.

    query: [d] float32. vectors: [n, d], in memory or memory-mapped; a block of them at a time is in memory. Raises
    InputError where the dimensions differ.
    """
    if vectors.ndim != 2 or query.shape != vectors.shape[1:]:
        raise InputError(f"search: expected vectors [n, {len(query)}], received {list(vectors.shape)}")
    search = _by_faiss if len(vectors) >= LIBRARY_FROM and importlib.util.find_spec("faiss") else _by_product
    places, products = np.empty(0, np.int64), np.empty(0, np.float32)
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        block = np.ascontiguousarray(vectors[start:start + ROWS_AT_ONCE], np.float32)
        found, closeness = search(query, block, min(count, len(block)))
        places, products = np.concatenate([places, found + start]), np.concatenate([products, closeness])
        best = np.lexsort((places, -products))[:count]
        places, products = places[best], products[best]
    return places, products


def _by_product(query: Floats, block: Floats, count: int) -> tuple[npt.NDArray[np.int64], Floats]:
    products = block @ query
    border = np.partition(products, len(products) - count)[len(products) - count]
    # Of equals at the border the earlier ones.
    best = np.concatenate([np.flatnonzero(products > border), np.flatnonzero(products == border)])[:count]
    return best, products[best]


def _by_faiss(query: Floats, block: Floats, count: int) -> tuple[npt.NDArray[np.int64], Floats]:
    import faiss

    products, places = faiss.knn(query[None], block, count, metric=faiss.METRIC_INNER_PRODUCT)
    return places[0], products[0]
