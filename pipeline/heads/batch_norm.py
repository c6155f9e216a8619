"""BatchNorm over the items of a whole batch, also of one that is never in one place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Moments:
    """count: how many rows. mean [D]; squares [D]: the sum of squared deviations from the mean; float."""

    count: int
    mean: Tensor
    squares: Tensor

    @classmethod
    def of(cls, values: Tensor) -> Moments:
        """Of rows [M, D], in float32 or better."""
        values = values.to(torch.promote_types(values.dtype, torch.float32))
        mean = values.mean(0)
        return cls(len(values), mean, (values - mean).square().sum(0))

    @classmethod
    def of_all(cls, parts: Iterable[Moments]) -> Moments:
        """Of the rows of all parts together (Chan et al. 1979): no cancellation, as sums of squares have."""
        return reduce(cls._and, parts)

    def _and(self, other: Moments) -> Moments:
        count = self.count + other.count
        apart = other.mean - self.mean
        return Moments(count, self.mean + apart * (other.count / count),
                       self.squares + other.squares + apart.square() * (self.count * other.count / count))


class ItemNorm(nn.BatchNorm1d):
    """BatchNorm of items [M, D]: in training by the moments of what it sees, or by those that it was given.

    given: mean and biased variance [D] of a batch that comes in parts.
    """

    given: tuple[Tensor, Tensor] | None = None

    def give(self, moments: Moments) -> None:
        """Normalise by these from now on, and count them into the running statistics once."""
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
        """A scalar whose gradient by `values` [M, D] is what reaches them through the given moments' gradients.

        count: rows of the whole batch. With μ the mean and v the variance over them, dμ/dx = 1 / count and
        dv/dx = 2 (x − μ) / count.
        """
        assert self.given is not None
        mean, variance = self.given
        assert mean.grad is not None
        assert variance.grad is not None
        apart = values - mean.detach()
        return (mean.grad * values + variance.grad * apart.square()).sum() / count
