"""BatchNorm over the items of a whole batch, also of a batch that is processed in pieces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class ItemMoments:
    """Mean and squared deviations of rows."""

    count: int  # how many rows
    mean: Tensor  # float [D]
    squares: Tensor  # float [D], the sum of squared deviations from the mean

    @classmethod
    def of(cls, values: Tensor) -> ItemMoments:
        """Compute the moments of rows [M, D] in float32 or better."""
        values = values.to(torch.promote_types(values.dtype, torch.float32))
        mean = values.mean(0)
        return cls(len(values), mean, (values - mean).square().sum(0))

    @classmethod
    def of_all(cls, parts: Iterable[ItemMoments]) -> ItemMoments:
        """Combine moments (Chan et al. 1979), without the cancellation that sums of squares have."""
        return reduce(cls._and, parts)

    def _and(self, other: ItemMoments) -> ItemMoments:
        count = self.count + other.count
        apart = other.mean - self.mean
        return ItemMoments(count, self.mean + apart * (other.count / count),
                       self.squares + other.squares + apart.square() * (self.count * other.count / count))


class ItemNorm(nn.BatchNorm1d):
    """BatchNorm of items [M, D]. In training it uses the moments of its input, or those given for the whole batch."""

    given: tuple[Tensor, Tensor] | None = None

    def give(self, moments: ItemMoments) -> None:
        """Use these moments from now on, and update the running statistics with them once."""
        self.given = (moments.mean.clone().requires_grad_(), (moments.squares / moments.count).requires_grad_())
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        with torch.no_grad():
            self.running_mean.lerp_(moments.mean, self.momentum)
            self.running_var.lerp_(moments.squares / max(moments.count - 1, 1), self.momentum)
            self.num_batches_tracked += 1

    def forward(self, values: Tensor) -> Tensor:
        if not self.training or self.given is None:
            return super().forward(values)
        mean, variance = self.given
        return ((values - mean) * (variance + self.eps).rsqrt() * self.weight + self.bias).to(values.dtype)

    def through_moments(self, values: Tensor, count: int) -> Tensor:
        """Build the scalar that carries the gradients of the given moments back to some rows [M, D] of the batch's.

        With μ the mean and v the variance, dμ/dx = 1 / count and dv/dx = 2 (x − μ) / count.
        """
        assert self.given is not None
        mean, variance = self.given
        assert mean.grad is not None
        assert variance.grad is not None
        apart = values - mean.detach()
        return (mean.grad * values + variance.grad * apart.square()).sum() / count
