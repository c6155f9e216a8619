"""Exact nearest neighbours of queries, in one pass over the vectors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from pipeline.foundation.evaluation.retrieval.blocks import (
    Cells,
    Floats,
    Ids,
    Marks,
    Singles,
    as_cells,
    cut,
)
from pipeline.foundation.evaluation.retrieval.top import Top
from pipeline.foundation.evaluation.retrieval.workers import share
from pipeline.foundation.parts.errors import InputError

QUERIES = 512  # at once
# Vectors that a thread takes at once, fewer if these had more than PRODUCTS products (32 MB) with
# the queries.
VECTORS = 65_536
PRODUCTS = 8_000_000
# Vectors that are converted at once, and numbers that are multiplied exactly at once, in the
# processor's cache.
CONVERTED = 2048
EXACT = 1 << 16
# Products beyond the k best of a block that are looked at before all of them are.
SPARE = 16
# If a larger share of products is near the best, vectors are so alike that float64 is tried before
# single pairs are.
ALIKE = 1 / 16
# Pairs are decided exactly once, at the end, unless there are this many times as many as wanted.
UNDECIDED = 4

# The largest relative error of one rounding in float64, float32 and float16.
DOUBLE_UNIT = 2.0**-53
UNIT = 2.0**-24
HALF_UNIT = 2.0**-11


# Files are mapped read-only, and these tensors are never written into. The filter is set once,
# because the warnings module cannot set and restore it for one thread alone.
warnings.filterwarnings("ignore", message="The given NumPy array is not writable")


class Exact:
    """The index that multiplies all vectors.

    It multiplies fast, with rounding. Products that are closer than their rounding errors are
    computed again in float64, pair by pair, which decides; of equal ones the earlier comes first.
    The result is therefore that of a sort by exact products, whatever the processor, the number of
    queries and the block size, for vectors of any length. Torch's threads each process blocks of
    their own.
    """

    def __init__(self, vectors: np.ndarray) -> None:
        """Hold the vectors [N, d]; they may be memory-mapped."""
        self.vectors = vectors
        # The length of the longest vector of each block that was read, by its rows: it bounds
        # rounding errors.
        self._longest: dict[tuple[int, int], float] = {}

    def top(self, queries: Singles, k: int) -> Top:
        """Find the nearest vectors of each query, see `VectorIndex.top`."""
        places = []
        products = []
        for best in self._best(queries, k):
            places.append(best.places)
            products.append(best.products())
        return Top(np.concatenate(places), np.concatenate(products))

    def places(self, queries: Singles, k: int) -> Ids:
        """Find their rows alone, int64 [Q, k], which is faster."""
        return np.concatenate([best.places for best in self._best(queries, k)])

    def _best(self, queries: Singles, k: int) -> Iterator[_Best]:
        vectors = self.vectors
        if vectors.ndim != 2 or queries.shape[1:] != vectors.shape[1:]:
            raise InputError(
                f"search: expected vectors [n, {queries.shape[1]}], received {list(vectors.shape)}"
            )
        k = min(k, len(vectors))
        for start in range(0, len(queries), QUERIES):
            part = queries[start : start + QUERIES]
            at_once = max(1, min(VECTORS, PRODUCTS // len(part)))
            blocks = cut((len(vectors), 1), at_once, 1)
            make = partial(_Best, part, vectors, k, self._longest)
            best, *others = share(blocks, make, lambda done: None)
            for other in others:
                best.take(other.pairs)
            best.decide()
            yield best


@dataclass(frozen=True)
class _Pairs:
    """P pairs of a query and a vector."""

    query: Ids  # int64 [P]
    place: Ids  # int64 [P], rows of the vectors
    product: Floats  # float64 [P]
    error: Floats  # float64 [P], the largest error of each product

    def __getitem__(self, chosen: Ids | Marks) -> _Pairs:
        return _Pairs(
            self.query[chosen], self.place[chosen], self.product[chosen], self.error[chosen]
        )

    def __add__(self, other: _Pairs) -> _Pairs:
        query = np.concatenate([self.query, other.query])
        place = np.concatenate([self.place, other.place])
        product = np.concatenate([self.product, other.product])
        error = np.concatenate([self.error, other.error])
        return _Pairs(query, place, product, error)

    def __setitem__(self, chosen: Ids | Marks, other: _Pairs) -> None:
        self.query[chosen] = other.query
        self.place[chosen] = other.place
        self.product[chosen] = other.product
        self.error[chosen] = other.error


class _Best:
    """The best pairs of queries with vectors in the blocks of one thread: by query, best first."""

    def __init__(
        self,
        queries: Singles,
        vectors: np.ndarray,
        k: int,
        longest: dict[tuple[int, int], float],
    ) -> None:
        self.queries = queries
        self.vectors = vectors
        self.k = k
        self.longest = longest
        self.exact = queries.astype(np.float64)
        self.lengths = np.linalg.norm(self.exact, axis=1)
        none = np.empty(0, np.int64)
        self.pairs = _Pairs(none, none, np.empty(0), np.empty(0))
        # What the k-th best product of each query is at least.
        self.least = np.full(len(queries), -np.inf)

    @property
    def places(self) -> Ids:
        """The rows of the best vectors, int64 [Q, k]."""
        return self.pairs.place.reshape(-1, self.k)

    def products(self) -> Floats:
        """Multiply each query with its best vectors in float64, [Q, k]."""
        return self._multiplied(self.pairs).reshape(-1, self.k)

    def add(self, rows: slice, columns: slice) -> None:
        """Process a block of vectors, see `Worker.add`."""
        block = np.asarray(self.vectors[rows])
        products, rounding = _products(self.queries, block)
        if not torch.isfinite(products.sum()):
            _refuse_nonfinite(block, rows.start)
        at = (rows.start, rows.stop)
        if at not in self.longest:
            self.longest[at] = _longest(block)
        largest = self.longest[at] * self.lengths
        error = rounding * largest
        query, place, product = self._near(products, error)
        if len(self.queries) > 1 and len(query) > ALIKE * products.numel():
            error = block.shape[1] * DOUBLE_UNIT * largest
            query, place, product = self._near(_double_products(self.exact, block), error)
        if len(query):
            self.take(_Pairs(query, place + rows.start, product.astype(np.float64), error[query]))

    def _near(self, products: torch.Tensor, error: Floats) -> tuple[Ids, Ids, Cells]:
        """Find the products [Q, B] that may be among the best: their queries, vectors and values.

        error: the largest error of each query's products, float64 [Q].
        """
        queries, vectors = products.shape
        if np.isfinite(self.least).all():
            return _at_least(products, _down(self.least - error, products))
        if vectors <= self.k:
            return _at_least(products, torch.full([queries], -torch.inf))
        best, places = products.topk(min(self.k + SPARE, vectors), dim=1)
        kth_best = best[:, self.k - 1].double().numpy()
        border = _down(kth_best - 2 * error, products)
        if best.shape[1] < vectors and not (best[:, -1] < border).all():
            return _at_least(products, border)
        query, column, product = _at_least(best, border)
        return query, places.numpy()[query, column], product

    def take(self, pairs: _Pairs) -> None:
        """Keep those of these pairs and of those before that may be among the best."""
        pairs = self.pairs + pairs
        pairs = pairs[_in_order(pairs)]
        self.pairs = pairs
        error = self._error()
        last = self._rank() == self.k - 1
        query = pairs.query[last]
        self.least[query] = pairs.product[last] - error[query]
        near = pairs.product >= (self.least - error)[pairs.query]
        self.pairs = pairs[near]
        if len(self.pairs.query) > UNDECIDED * self.k * len(self.queries):
            self.decide()

    def _error(self) -> Floats:
        """The largest error of each query's products, float64 [Q]."""
        error = np.zeros(len(self.queries))
        np.maximum.at(error, self.pairs.query, self.pairs.error)
        return error

    def _rank(self) -> Ids:
        query = self.pairs.query
        rank: Ids = np.arange(len(query)) - np.searchsorted(query, query)
        return rank

    def decide(self) -> None:
        """Keep the best alone, and order them, by exact products where these may decide."""
        pairs = self.pairs
        error = self._error()
        same_query = np.diff(pairs.query) == 0
        is_near = -np.diff(pairs.product) <= 2 * error[pairs.query[1:]]
        close = same_query & is_near
        doubtful = np.flatnonzero(np.append(close, False) | np.append(False, close))
        # Products are in order but for these, so they change places among themselves alone.
        exact = pairs[doubtful]
        rounded = exact.error > 0
        exact.product[rounded] = self._multiplied(exact[rounded])
        exact.error[rounded] = 0
        pairs[doubtful] = exact[_in_order(exact)]
        self.pairs = pairs[self._rank() < self.k]

    def _multiplied(self, pairs: _Pairs) -> Floats:
        """Multiply single pairs, each alone, so that equal vectors have equal products wherever
        they are.
        """
        products = np.empty(len(pairs.query))
        at_once = max(1, EXACT // self.vectors.shape[1])
        for start in range(0, len(products), at_once):
            part = slice(start, start + at_once)
            vectors = np.asarray(self.vectors[pairs.place[part]], np.float64)
            products[part] = np.einsum("ij,ij->i", vectors, self.exact[pairs.query[part]])
        return products


def _refuse_nonfinite(block: np.ndarray, start: int) -> None:
    """Refuse the first vector with a NaN or infinity; a sum of finite products may be infinite."""
    for place in np.flatnonzero(~np.isfinite(block).all(1))[:1].tolist():
        raise InputError(f"search: vector {start + place} holds a NaN or infinity; embed again")


def _in_order(pairs: _Pairs) -> Ids:
    order: Ids = np.lexsort((pairs.place, -pairs.product, pairs.query))
    return order


def _at_least(products: torch.Tensor, border: torch.Tensor) -> tuple[Ids, Ids, Cells]:
    query, column = (products >= border[:, None]).nonzero(as_tuple=True)
    return query.numpy(), column.numpy(), products[query, column].numpy()


def _down(border: Floats, products: torch.Tensor) -> torch.Tensor:
    """Round down to the type of products, since comparing different types takes longer."""
    rounded = torch.from_numpy(border).to(products.dtype)
    if products.dtype == torch.float64:
        return rounded
    return rounded.nextafter(torch.tensor(-torch.inf))


def _longest(vectors: np.ndarray) -> float:
    """The length of the longest vector."""
    squares = 0.0
    for start in range(0, len(vectors), CONVERTED):
        part = np.asarray(vectors[start : start + CONVERTED], np.float32)
        squares = max(squares, float(np.einsum("ij,ij->i", part, part).max()))
    return math.sqrt(squares)


def _products(queries: Singles, block: np.ndarray) -> tuple[torch.Tensor, float]:
    """The products float32 [Q, B], and the largest error of each, as a share of both lengths
    multiplied.

    A sum of d products is off by at most d roundings (Higham 2002, 3.5). One query is multiplied at
    the speed of memory: numpy's einsum does so for float32, torch's product of a matrix and a
    vector for float16, whose result is a float16 and so is its query.
    """
    rounding = queries.shape[1] * UNIT
    if len(queries) == 1 and block.dtype == np.float32:
        products = torch.from_numpy(np.einsum("ij,j->i", block, queries[0]))
        return products[None], rounding
    if len(queries) == 1 and block.dtype == np.float16:
        query = torch.from_numpy(queries[0]).half()
        products = (torch.from_numpy(block) @ query).float()
        if torch.isfinite(products.sum()):
            return products[None], rounding + 2 * HALF_UNIT
    if block.dtype == np.float64:
        rounding += UNIT  # each number is rounded to float32 before
    asked = torch.from_numpy(queries)
    if block.dtype == np.float32:
        return asked @ torch.from_numpy(as_cells(block)).T, rounding
    parts = []
    for start in range(0, len(block), CONVERTED):
        vectors = torch.from_numpy(as_cells(block[start : start + CONVERTED])).float()
        parts.append(asked @ vectors.T)
    return torch.cat(parts, dim=1), rounding


def _double_products(queries: Floats, block: np.ndarray) -> torch.Tensor:
    asked = torch.from_numpy(queries)
    parts = []
    for start in range(0, len(block), CONVERTED):
        vectors = torch.from_numpy(block[start : start + CONVERTED].astype(np.float64))
        parts.append(asked @ vectors.T)
    return torch.cat(parts, dim=1)
