"""Sort items per dimension, padding last."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pipeline.heads.pooling.cpu_sort import can_sort_fast, in_chunks, order_dtype, scatter_chunk, sort_chunk


def sort_descending(items: Tensor, valid: Tensor) -> Tensor:
    """Sort each dimension's valid values in descending order.

    Args:
        items: [B, N, D], floating point.
        valid: bool [B, N], the valid slots first.

    Returns:
        [B, N, D]: the valid values in descending order, then zeros.
    """
    if can_sort_fast(items):
        return SortItems.apply(items, valid).transpose(1, 2)
    padding = ~valid.unsqueeze(2)
    return items.masked_fill(padding, float("-inf")).sort(1, descending=True).values.masked_fill(padding, 0.0)


class SortItems(torch.autograd.Function):
    """`sort_descending` by `cpu_sort`: items float32 [B, N, D] and valid bool [B, N] to [B, D, N]."""

    @staticmethod
    def forward(ctx: Any, items: Tensor, valid: Tensor) -> Tensor:
        batch, slots, dim = items.shape
        ordered = items.new_empty(batch, dim, slots)
        order = torch.empty(batch, dim, slots, dtype=order_dtype(slots))
        padding = padding_of(valid)

        def sort(part: slice) -> None:
            ordered[part], order[part] = sort_chunk(items[part], rows(padding, part))

        in_chunks(sort, items)
        ctx.save_for_backward(order, valid)
        return ordered

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        order, valid = ctx.saved_tensors
        of_items = gradient.new_empty(gradient.shape[0], gradient.shape[2], gradient.shape[1])
        padding = padding_of(valid)

        def unsort(part: slice) -> None:
            of_ordered = gradient[part]
            if padding is not None:
                of_ordered = of_ordered.masked_fill(padding[part].unsqueeze(1), 0.0)
            of_items[part] = scatter_chunk(of_ordered, order[part].long())

        in_chunks(unsort, of_items)
        return of_items, None


def padding_of(valid: Tensor) -> Tensor | None:
    """The padding of a batch, bool [B, N]; None if it has none."""
    return None if bool(valid.all()) else ~valid


def rows(padding: Tensor | None, part: slice) -> Tensor | None:
    """A part of the batch of `padding_of`'s result."""
    return None if padding is None else padding[part]
