"""A weighted sum of sorted items, the weights shared by all dimensions: what GPO computes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pipeline.heads.pooling.cpu_sort import (
    can_sort_fast,
    gather_chunk,
    in_chunks,
    order_dtype,
    scatter_chunk,
    sort_chunk,
)
from pipeline.heads.pooling.sort import padding_of, rows, sort_descending


def sorted_sum(items: Tensor, valid: Tensor, theta: Tensor) -> Tensor:
    """Σ_k θ_k · (the k-th greatest value), per dimension.

    Args:
        items: [B, N, D], floating point, anything finite in padding.
        valid: bool [B, N], the valid slots first.
        theta: [B, N], zeros in padding.

    Returns:
        [B, D].
    """
    if can_sort_fast(items):
        return SortedSum.apply(items, valid, theta)
    return (theta.unsqueeze(1) @ sort_descending(items, valid)).squeeze(1)


class SortedSum(torch.autograd.Function):
    """`sorted_sum` in float32 by `cpu_sort`; the backward pass gets the order, not the sorted items."""

    @staticmethod
    def forward(ctx: Any, items: Tensor, valid: Tensor, theta: Tensor) -> Tensor:
        batch, slots, dim = items.shape
        pooled = items.new_empty(batch, dim)
        order = torch.empty(batch, dim, slots, dtype=order_dtype(slots))
        padding = padding_of(valid)

        def pool(part: slice) -> None:
            ordered, order[part] = sort_chunk(items[part], rows(padding, part))
            pooled[part] = (ordered @ theta[part].unsqueeze(2)).squeeze(2)

        in_chunks(pool, items)
        ctx.save_for_backward(items, valid, theta, order)
        return pooled

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, Tensor]:
        items, valid, theta, order = ctx.saved_tensors
        of_items, of_theta = torch.empty_like(items), torch.empty_like(theta)

        def pull_back(part: slice) -> None:
            index = order[part].long()
            g = gradient[part].unsqueeze(2)
            of_theta[part] = (g.transpose(1, 2) @ gather_chunk(items[part], index)).squeeze(1)
            of_items[part] = scatter_chunk(g * theta[part].unsqueeze(1), index)

        in_chunks(pull_back, items)
        return of_items, None, of_theta.masked_fill_(~valid, 0.0)
