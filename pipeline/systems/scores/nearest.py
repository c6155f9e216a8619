"""Exact nearest neighbours of queries, in one pass over the vectors."""

import numpy as np
import torch

from pipeline.evaluation.retrieval import Floats, Singles
from pipeline.evaluation.retrieval.blocks import Ids, cut
from pipeline.evaluation.retrieval.embeddings import to_tensor
from pipeline.evaluation.retrieval.workers import share
from pipeline.parts.errors import InputError

# Vectors that a thread takes at once, fewer if these had more than PRODUCTS products (16 MB) with the queries; and
# those that are converted to float32 at once, in the processor's cache.
VECTORS, PRODUCTS, CONVERTED = 65_536, 4_000_000, 2048

# The largest relative error of one rounding in float32 and in float16.
UNIT, HALF_UNIT = 2.0**-24, 2.0**-11


def nearest(queries: Singles, vectors: np.ndarray, count: int) -> tuple[Ids, Singles]:
    """Find the vectors with the largest inner product with each query, largest first; of equal ones the earlier first.

    All vectors are multiplied fast, with rounding. Those within the rounding error of the best are multiplied again in
    float64, which decides. The result is therefore that of a sort by exact products, whatever the processor, the number
    of queries and the block size. Torch's threads each process blocks of their own.
    """
    if vectors.ndim != 2 or queries.shape[1:] != vectors.shape[1:]:
        raise InputError(f"search: expected vectors [n, {queries.shape[1]}], received {list(vectors.shape)}")
    at_once = max(1, min(VECTORS, PRODUCTS // max(1, len(queries))))
    workers = share(cut((len(vectors), 1), at_once, 1), lambda: _Worker(queries, vectors, min(count, len(vectors))),
                    lambda done: None)
    first, *others = workers
    for other in others:
        for mine, theirs in zip(first.best, other.best, strict=True):
            mine.take(theirs.places, theirs.products)
    return (np.stack([each.places for each in first.best]),
            np.stack([each.products for each in first.best]).astype(np.float32))


class _Best:
    """One query's best so far: their places [k] and products float64 [k], largest first."""

    def __init__(self, query: Singles, count: int) -> None:
        self.query, self.count = query.astype(np.float64), count
        self.length = float(np.linalg.norm(self.query))
        self.places, self.products, self.longest = np.empty(0, np.int64), np.empty(0), 1.0

    def border(self, products: torch.Tensor, rounding: float) -> float:
        """The least of a block's products [B] that may belong to one of the best vectors.

        rounding: the largest error of a product, as a share of both lengths multiplied. The border may have it, too.
        """
        least = -np.inf
        if len(self.products) == self.count:
            least = float(self.products[-1])
        elif len(products) >= self.count:
            least = products.topk(self.count).values[-1].item()
        return least - 2 * rounding * self.longest * self.length

    def add(self, rows: np.ndarray, places: Ids) -> None:
        """Merge in some vectors [m, d]."""
        exact = rows.astype(np.float64)
        self.longest = max(self.longest, float(np.sqrt(np.einsum("ij,ij->i", exact, exact).max())))
        # Row by row, so that equal vectors have equal products at any position.
        self.take(places, np.einsum("ij,j->i", exact, self.query))

    def take(self, places: Ids, products: Floats) -> None:
        """Keep the best of these and of those before."""
        self.places, self.products = np.concatenate([self.places, places]), np.concatenate([self.products, products])
        order = np.lexsort((self.places, -self.products))[:self.count]
        self.places, self.products = self.places[order], self.products[order]


class _Worker:
    """Each query's best vectors in the blocks of one thread."""

    def __init__(self, queries: Singles, vectors: np.ndarray, count: int) -> None:
        self.queries, self.vectors = queries, vectors
        self.best = [_Best(query, count) for query in queries]

    def add(self, rows: slice, columns: slice) -> None:
        block = np.asarray(self.vectors[rows])
        products, rounding = _products(self.queries, block)
        if not torch.isfinite(products.sum()):
            for place in np.flatnonzero(~np.isfinite(block).all(1))[:1].tolist():
                raise InputError(f"search: vector {rows.start + place} holds a NaN or infinity; embed again")
        border = [each.border(row, rounding) for each, row in zip(self.best, products, strict=True)]
        near = products >= torch.tensor(border)[:, None]
        for number in torch.nonzero(near.any(1))[:, 0].tolist():
            here = torch.nonzero(near[number])[:, 0].numpy()
            self.best[number].add(block[here], here + rows.start)


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
    parts = [asked @ to_tensor(block[start:start + CONVERTED]).T for start in range(0, len(block), CONVERTED)] \
        if block.dtype != np.float32 else [asked @ to_tensor(block).T]
    return torch.cat(parts, dim=1), rounding
