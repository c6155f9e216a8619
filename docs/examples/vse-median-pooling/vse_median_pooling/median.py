"""Median pooling."""

import torch
from torch import Tensor

from pipeline.make.heads.pooling.base import Pooling

from .options import MedianPoolOptions


class MedianPool(Pooling):
    """The median of each dimension; of an even number of values as `even` says. No parameters."""

    def __init__(self, dim: int, options: MedianPoolOptions) -> None:
        super().__init__(dim)
        self.even = options.even

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        """Pool items.

        Args:
            items: [B, N, D], zeros where there is no item.
            valid: [B, N] bool, True where there is one.

        Returns:
            [B, D].
        """
        middle = self._middle(items, valid)
        return middle[0] if self.even == "lower" else middle.mean(dim=0)

    def _middle(self, items: Tensor, valid: Tensor) -> Tensor:
        """The two values in the middle, [2, B, D]; the same twice where their number is odd."""
        ascending = items.masked_fill(~valid.unsqueeze(2), float("inf")).sort(dim=1).values
        counts = valid.sum(dim=1)
        places = torch.stack([(counts - 1) // 2, counts // 2])
        return torch.stack([ascending[torch.arange(len(items)), place] for place in places])
