"""Exact nearest neighbours of queries, in one pass over the vectors."""

import warnings

import numpy as np
import torch

from pipeline.evaluation.retrieval.blocks import Floats, Ids, Singles, as_cells, cut
from pipeline.evaluation.retrieval.top import Top, best_of_each
from pipeline.evaluation.retrieval.workers import share
from pipeline.parts.errors import InputError

# Queries at once. Vectors that a thread takes at once, fewer if these had more than PRODUCTS products (32 MB) with the
# queries; and those that are converted at once, in the processor's cache. Pairs that are multiplied exactly at once.
QUERIES, VECTORS, PRODUCTS, CONVERTED, PAIRS = 512, 65_536, 8_000_000, 2048, 512
# If a larger share of products is near the best, vectors are so alike that float64 is tried before single pairs are.
ALIKE = 1 / 16

# The largest relative error of one rounding in float64, float32 and float16.
DOUBLE_UNIT, UNIT, HALF_UNIT = 2.0**-53, 2.0**-24, 2.0**-11


# Files are mapped read-only, and these tensors are never written into. The filter is set once, because the warnings
# module cannot set and restore it for one thread alone.
warnings.filterwarnings("ignore", message="The given NumPy array is not writable")


class Exact:
    """The index that multiplies all vectors.

    It multiplies fast, with rounding. Those within the rounding error of the best are multiplied again in float64, pair
    by pair, which decides; of equal ones the earlier comes first. The result is therefore that of a sort by exact
    products, whatever the processor, the number of queries and the block size. Torch's threads each process blocks of
    their own.
    """

    def __init__(self, vectors: np.ndarray) -> None:
        """Hold the vectors [N, d]; they may be memory-mapped."""
        self.vectors = vectors

    def top(self, queries: Singles, k: int) -> Top:
        """Find the nearest vectors of each query, see `VectorIndex.top`."""
        if self.vectors.ndim != 2 or queries.shape[1:] != self.vectors.shape[1:]:
            raise InputError(f"search: expected vectors [n, {queries.shape[1]}], received {list(self.vectors.shape)}")
        k = min(k, len(self.vectors))
        parts = [self._top(queries[start:start + QUERIES], k) for start in range(0, len(queries), QUERIES)]
        return Top(*map(np.concatenate, zip(*parts, strict=True)))

    def _top(self, queries: Singles, k: int) -> Top:
        at_once = max(1, min(VECTORS, PRODUCTS // len(queries)))
        blocks = cut((len(self.vectors), 1), at_once, 1)
        first, *rest = share(blocks, lambda: _Best(queries, self.vectors, k), lambda done: None)
        for other in rest:
            first.take(other.query, other.place, other.product)
        return Top(first.place.reshape(-1, k), first.product.reshape(-1, k))


class _Best:
    """The best pairs of queries with vectors in the blocks of one thread: by query, best first."""

    def __init__(self, queries: Singles, vectors: np.ndarray, k: int) -> None:
        self.queries, self.vectors, self.k = queries, vectors, k
        self.exact = queries.astype(np.float64)
        self.lengths, self.longest = np.linalg.norm(self.exact, axis=1), 1.0
        self.query, self.place, self.product = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)

    def add(self, rows: slice, columns: slice) -> None:
        """Process a block of vectors, see `Worker.add`."""
        block = np.asarray(self.vectors[rows])
        products, rounding = _products(self.queries, block)
        if not torch.isfinite(products.sum()):
            for place in np.flatnonzero(~np.isfinite(block).all(1))[:1].tolist():
                raise InputError(f"search: vector {rows.start + place} holds a NaN or infinity; embed again")
        query, place = self._near(products, rounding)
        if len(self.queries) > 1 and len(query) > ALIKE * products.numel():
            query, place = self._near(_double_products(self.exact, block), block.shape[1] * DOUBLE_UNIT)
        if len(query):
            self.take(query, place + rows.start, self._multiplied(block, query, place))

    def _near(self, products: torch.Tensor, rounding: float) -> tuple[Ids, Ids]:
        """Find the products [Q, B] that may be among the best, by query and vector.

        rounding: the largest error of a product, as a share of both lengths multiplied. That of the k-th best may be
        as large.
        """
        least = np.full(len(self.queries), -np.inf)
        if len(self.product) == self.k * len(self.queries):
            least = self.product[self.k - 1::self.k]
        elif products.shape[1] >= self.k:
            least = products.topk(self.k, dim=1).values[:, -1].double().numpy()
        border = torch.from_numpy(least - 2 * rounding * self.longest * self.lengths)
        if products.dtype == torch.float32:  # rounded down, since comparing different types takes longer
            border = torch.nextafter(border.float(), torch.tensor(-torch.inf))
        query, place = (products >= border[:, None]).nonzero(as_tuple=True)
        return query.numpy(), place.numpy()

    def _multiplied(self, block: np.ndarray, query: Ids, place: Ids) -> Floats:
        """Multiply single pairs, each alone, so that equal vectors have equal products wherever they are."""
        products = np.empty(len(query))
        for start in range(0, len(query), PAIRS):
            part = slice(start, start + PAIRS)
            vectors = block[place[part]].astype(np.float64)
            self.longest = max(self.longest, float(np.sqrt(np.einsum("ij,ij->i", vectors, vectors).max())))
            products[part] = np.einsum("ij,ij->i", vectors, self.exact[query[part]])
        return products

    def take(self, query: Ids, place: Ids, product: Floats) -> None:
        """Keep the best of these pairs and of those before."""
        query, place = np.concatenate([self.query, query]), np.concatenate([self.place, place])
        product = np.concatenate([self.product, product])
        best = best_of_each(query, product, place, self.k)
        self.query, self.place, self.product = query[best], place[best], product[best]


def _products(queries: Singles, block: np.ndarray) -> tuple[torch.Tensor, float]:
    """The products float32 [Q, B], and the largest error of each, as a share of both lengths multiplied.

    A sum of d products is off by at most d roundings (Higham 2002, 3.5). One query is multiplied at the speed of
    memory: numpy's einsum does so for float32, torch's product of a matrix and a vector for float16, whose result is
    a float16 and so is its query.
    """
    rounding = queries.shape[1] * UNIT
    if len(queries) == 1 and block.dtype == np.float32:
        return torch.from_numpy(np.einsum("ij,j->i", block, queries[0]))[None], rounding
    if len(queries) == 1 and block.dtype == np.float16:
        products = (torch.from_numpy(block) @ torch.from_numpy(queries[0]).half()).float()
        if torch.isfinite(products.sum()):
            return products[None], rounding + 2 * HALF_UNIT
    asked = torch.from_numpy(queries)
    if block.dtype == np.float32:
        return asked @ torch.from_numpy(as_cells(block)).T, rounding
    parts = [asked @ torch.from_numpy(as_cells(block[start:start + CONVERTED])).T
             for start in range(0, len(block), CONVERTED)]
    return torch.cat(parts, dim=1), rounding


def _double_products(queries: Floats, block: np.ndarray) -> torch.Tensor:
    asked, starts = torch.from_numpy(queries), range(0, len(block), CONVERTED)
    return torch.cat([asked @ torch.from_numpy(block[start:start + CONVERTED].astype(np.float64)).T
                      for start in starts], dim=1)
