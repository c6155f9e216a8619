"""Sort items per dimension, padding last."""

from __future__ import annotations

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


def sort_descending(items: Tensor, valid: Tensor) -> Tensor:
    """Sort each dimension's valid values, which come first, in descending order: [B, N, D], then zeros."""
    if can_sort_fast(items):
        return SortItems.apply(items, valid)
    padding = ~valid.unsqueeze(2)
    return items.masked_fill(padding, float("-inf")).sort(1, descending=True).values.masked_fill(padding, 0.0)


class SortItems(torch.autograd.Function):
    """`sort_descending` by `cpu_sort`, for float32."""

    @staticmethod
    def forward(ctx: Any, items: Tensor, valid: Tensor) -> Tensor:
        chunks = Chunks(valid, items.shape[2])
        places: list[Any] = [None] * len(chunks.chunks)
        ordered = torch.zeros_like(items)

        def sort(chunk: Chunk) -> None:
            values, places[chunk.number] = sort_chunk(read_chunk(items, chunk))
            write_chunk(ordered, chunk, values)

        chunks.each(sort)
        ctx.chunks = chunks
        ctx.save_for_backward(*places)
        return ordered

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        places, of_items = ctx.saved_tensors, torch.zeros_like(gradient)

        def unsort(chunk: Chunk) -> None:
            of_ordered = read_chunk(gradient, chunk)
            write_chunk(of_items, chunk, unsort_chunk(of_ordered, places[chunk.number].long()))

        ctx.chunks.each(unsort)
        return of_items, None
