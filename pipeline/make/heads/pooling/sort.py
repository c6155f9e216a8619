"""Sort items per dimension, padding last, and add them up by weights of their ranks."""

from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pipeline.make.heads.pooling import cpu_sort
from pipeline.make.heads.pooling.cpu_sort import (
    Chunk,
    Chunks,
    can_sort_fast,
    read_chunk,
    write_chunk,
)


def sort_descending(items: Tensor, valid: Tensor) -> Tensor:
    """Sort each dimension's valid values, which come first, in descending order: [B, N, D], then
    zeros.
    """
    if can_sort_fast(items):
        return SortItems.apply(items, valid)
    padding = ~valid.unsqueeze(2)
    ordered = items.masked_fill(padding, float("-inf")).sort(1, descending=True).values
    return ordered.masked_fill(padding, 0.0)


class SortItems(torch.autograd.Function):
    """`sort_descending` by `cpu_sort`, for float32."""

    @staticmethod
    def forward(ctx: Any, items: Tensor, valid: Tensor) -> Tensor:
        chunks = Chunks(valid, items.shape[2])
        places: list[Any] = [None] * len(chunks.chunks)
        ordered = torch.empty_like(items)

        def sort(chunk: Chunk) -> None:
            unsorted = read_chunk(items, chunk, torch.float64)
            values, places[chunk.number] = cpu_sort.sort_chunk(unsorted)
            write_chunk(ordered, chunk, values)

        chunks.each(sort)
        ctx.chunks = chunks
        ctx.save_for_backward(*places)
        return ordered

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        places = ctx.saved_tensors
        grad_items = torch.empty_like(gradient)

        def unsort(chunk: Chunk) -> None:
            grad_ordered = read_chunk(gradient, chunk)
            unsorted = cpu_sort.unsort_chunk(grad_ordered, places[chunk.number].long())
            write_chunk(grad_items, chunk, unsorted)

        ctx.chunks.each(unsort)
        return grad_items, None


def sorted_sum(items: Tensor, valid: Tensor, theta: Tensor) -> Tensor:
    """Σ_k θ_k · (the k-th greatest value), per dimension: [B, D], with θ [B, N] zero in padding."""
    if can_sort_fast(items):
        return SortedSum.apply(items, valid, theta, torch.is_grad_enabled())
    return (theta.unsqueeze(1) @ sort_descending(items, valid)).squeeze(1)


class SortedSum(torch.autograd.Function):
    """`sorted_sum` in float32 by `cpu_sort`. The backward pass receives the sorted items instead of
    the items.
    """

    @staticmethod
    def forward(ctx: Any, items: Tensor, valid: Tensor, theta: Tensor, kept: bool) -> Tensor:
        chunks = Chunks(valid, items.shape[2])
        pooled = items.new_empty(items.shape[0], items.shape[2])
        weights = theta[chunks.order].unsqueeze(2)

        def pool(chunk: Chunk) -> tuple[Tensor, ...]:
            ordered, places = cpu_sort.sort_chunk(read_chunk(items, chunk, torch.float64))
            pooled[chunk.part] = (ordered @ weights[chunk.part, : chunk.items]).squeeze(2)
            if not kept:
                return ()
            return ordered, places

        saved = chain(*chunks.each(pool))
        ctx.chunks = chunks
        ctx.items = items.shape
        ctx.save_for_backward(theta, *saved)
        return chunks.in_batch(pooled)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, Tensor, None]:
        theta, *saved = ctx.saved_tensors
        chunks = ctx.chunks
        grad_items = theta.new_empty(ctx.items)
        grad_theta = torch.zeros_like(theta)
        grad_pooled = gradient[chunks.order].unsqueeze(1)
        weights = theta[chunks.order].unsqueeze(1)

        def pull_back(chunk: Chunk) -> None:
            g = grad_pooled[chunk.part]
            ordered, places = saved[2 * chunk.number : 2 * chunk.number + 2]
            grad_theta[chunk.part, : chunk.items] = (g @ ordered).squeeze(1)
            grad_ordered = g.transpose(1, 2) * weights[chunk.part, :, : chunk.items]
            write_chunk(grad_items, chunk, cpu_sort.unsort_chunk(grad_ordered, places.long()))

        chunks.each(pull_back)
        return grad_items, None, chunks.in_batch(grad_theta), None
