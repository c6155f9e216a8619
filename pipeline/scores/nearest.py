"""The nearest vectors of queries, exactly, in one pass over the vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pipeline.errors import InputError
from pipeline.retrieval.blocks import Ids
from pipeline.retrieval.tensors import to_tensor

Floats = npt.NDArray[np.float32]

# Products in memory at once (32 MB), and vectors that are made float32 at once, in the processor's cache.
PRODUCTS, CONVERTED = 8_000_000, 4096


def nearest(queries: Floats, vectors: npt.NDArray[Any], count: int) -> tuple[Ids, Floats]:
    """The vectors with the largest inner product with each query, largest first; of equals the earlier first.

    All vectors are multiplied in float32. Whatever comes within the rounding of these products of the best is
    multiplied again in float64, and this decides: so the result is that of a sort by exact products, whatever the
    processor, the number of queries and the size of blocks.

    Args:
        queries: [Q, d] float32.
        vectors: [n, d] float16 or float32, about of one length, as embeddings are; in memory or memory-mapped.
        count: How many are sought, k; fewer where there are fewer vectors.

    Returns:
        Places int64 [Q, k], and the products float32 [Q, k].

    Raises:
        InputError: Where the dimensions differ, and for a vector with a NaN or infinity, with its place.
    """
    if vectors.ndim != 2 or queries.shape[1:] != vectors.shape[1:]:
        raise InputError(f"search: expected vectors [n, {queries.shape[1]}], received {list(vectors.shape)}")
    best = [_Best(query, min(count, len(vectors))) for query in queries]
    at_once = max(1, PRODUCTS // max(1, len(queries)))
    for start in range(0, len(vectors), at_once):
        block = vectors[start:start + at_once]
        products = _products(queries, block)
        if not torch.isfinite(products.sum()):
            _refuse_nonfinite(products, start)
        border = torch.tensor([each.border(row) for each, row in zip(best, products, strict=True)])
        near = products >= border[:, None]
        for number in torch.nonzero(near.any(1))[:, 0].tolist():
            best[number].add(block, torch.nonzero(near[number])[:, 0].numpy(), start)
    return np.stack([each.places for each in best]), np.stack([each.products for each in best]).astype(np.float32)


class _Best:
    """One query's best so far: their places [k] and products float64 [k], largest first."""

    def __init__(self, query: Floats, count: int) -> None:
        self.query, self.count = query.astype(np.float64), count
        self.places, self.products = np.empty(0, np.int64), np.empty(0)
        self.longest = 0.0

    def border(self, products: torch.Tensor) -> float:
        """The least product in float32 that may belong to one of the best, of a block's [B] or those before."""
        least = float(self.products[-1]) if len(self.products) == self.count else -np.inf
        if len(products) >= self.count:
            least = max(least, products.topk(self.count).values[-1].item()) if least == -np.inf else least
        # A sum of d products is off by at most d roundings of the product of both lengths (Higham 2002, 3.5); twice,
        # since the border is off as well, and once more for what is found longer than all before.
        length = max(self.longest, 1.0) * float(np.linalg.norm(self.query))
        return least - 4 * len(self.query) * 2.0**-24 * length

    def add(self, block: npt.NDArray[Any], near: Ids, start: int) -> None:
        """Takes the best of these rows of a block that begins at place `start`."""
        rows = block[near].astype(np.float64)
        self.longest = max(self.longest, float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max())))
        # Row by row, so that equal vectors have equal products wherever they stand.
        places, products = near + start, np.einsum("ij,j->i", rows, self.query)
        self.places, self.products = np.concatenate([self.places, places]), np.concatenate([self.products, products])
        order = np.lexsort((self.places, -self.products))[:self.count]
        self.places, self.products = self.places[order], self.products[order]


def _refuse_nonfinite(products: torch.Tensor, start: int) -> None:
    """Raises InputError with the place of the first vector whose product is no number; sums may overflow."""
    for place in torch.nonzero(~torch.isfinite(products).all(0))[:1, 0].tolist():
        raise InputError(f"search: vector {start + place} holds a NaN or infinity, or is too long; embed again")


def _products(queries: Floats, block: npt.NDArray[Any]) -> torch.Tensor:
    """float32 [Q, B]. One query is a product of a matrix and a vector, which goes at the speed of memory."""
    if block.dtype == np.float32:
        return _multiply(queries, np.asarray(block))
    parts = [_multiply(queries, to_tensor(block[start:start + CONVERTED]).numpy())
             for start in range(0, len(block), CONVERTED)]
    return torch.cat(parts, dim=1)


def _multiply(queries: Floats, block: Floats) -> torch.Tensor:
    if len(queries) == 1:
        return torch.from_numpy(block @ queries[0])[None]
    return torch.from_numpy(queries) @ to_tensor(block).T
