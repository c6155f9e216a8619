"""Sort items per dimension, padding last."""

from __future__ import annotations

from torch import Tensor


def sort_descending(items: Tensor, valid: Tensor) -> Tensor:
    """Sort each dimension's valid values in descending order.

    Args:
        items: [B, N, D], floating point.
        valid: bool [B, N], the valid slots first.

    Returns:
        [B, N, D]: the valid values in descending order, then zeros.
    """
    padding = ~valid.unsqueeze(2)
    return items.masked_fill(padding, float("-inf")).sort(1, descending=True).values.masked_fill(padding, 0.0)
