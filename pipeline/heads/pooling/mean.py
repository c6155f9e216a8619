"""Mean pooling (MeanPool of VSE+2AD 3.2.1, AvgPool of VSE∞ 3.2)."""

from __future__ import annotations

from torch import Tensor

from pipeline.heads.pooling.base import Pooling


class MeanPool(Pooling):
    """The mean of each dimension over the items. No parameters."""

    title = "MeanPool"
    paper = "VSE+2AD, section 3.2.1"

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        return mean_over_items(items, valid)


def mean_over_items(items: Tensor, valid: Tensor) -> Tensor:
    """Compute the mean over a sample's valid items: [B, D]."""
    # Divided first: the sum of great values may overflow.
    return (items.masked_fill(~valid.unsqueeze(2), 0.0) / valid.sum(1).view(-1, 1, 1)).sum(1)
