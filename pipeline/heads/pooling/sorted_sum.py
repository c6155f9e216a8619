"""A weighted sum of sorted items, the weights shared by all dimensions: what GPO computes."""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pipeline.heads.pooling.cpu_sort import (
    Chunk,
    Chunks,
    can_sort_fast,
    read_chunk,
    sort_chunk,
    unsort_chunk,
    write_chunk,
)
from pipeline.heads.pooling.sort import sort_descending


def sorted_sum(items: Tensor, valid: Tensor, theta: Tensor) -> Tensor:
    """Σ_k θ_k · (the k-th greatest value), per dimension: [B, D], with θ [B, N] zero in padding."""
    if can_sort_fast(items):
        return SortedSum.apply(items, valid, theta, torch.is_grad_enabled())
    return (theta.unsqueeze(1) @ sort_descending(items, valid)).squeeze(1)


class SortedSum(torch.autograd.Function):
    """`sorted_sum` in float32 by `cpu_sort`. The backward pass receives the sorted items in place of the items."""

    @staticmethod
    def forward(ctx: Any, items: Tensor, valid: Tensor, theta: Tensor, kept: bool) -> Tensor:
        chunks = Chunks(valid, items.shape[2])
        pooled, weights = items.new_empty(items.shape[0], items.shape[2]), theta[chunks.order].unsqueeze(2)

        def pool(chunk: Chunk) -> tuple[Tensor, ...]:
            ordered, places = sort_chunk(read_chunk(items, chunk))
            pooled[chunk.part] = (ordered @ weights[chunk.part, :chunk.items]).squeeze(2)
            return (ordered, places) if kept else ()

        ctx.chunks, ctx.items = chunks, items.shape
        ctx.save_for_backward(theta, *chain(*chunks.each(pool)))
        return chunks.in_batch(pooled)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, Tensor, None]:
        theta, *saved = ctx.saved_tensors
        chunks, of_items, of_theta = ctx.chunks, theta.new_zeros(ctx.items), torch.zeros_like(theta)
        of_pooled, weights = gradient[chunks.order].unsqueeze(1), theta[chunks.order].unsqueeze(1)

        def pull_back(chunk: Chunk) -> None:
            g, (ordered, places) = of_pooled[chunk.part], saved[2 * chunk.number:2 * chunk.number + 2]
            of_theta[chunk.part, :chunk.items] = (g @ ordered).squeeze(1)
            of_ordered = g.transpose(1, 2) * weights[chunk.part, :, :chunk.items]
            write_chunk(of_items, chunk, unsort_chunk(of_ordered, places.long()))

        chunks.each(pull_back)
        return of_items, None, chunks.in_batch(of_theta), None
