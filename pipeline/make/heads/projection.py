"""Projections from an encoder's items to the joint space, and the BatchNorm of a batch that is
processed in pieces.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.compiler import is_exporting

from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.features import FEATURES
from pipeline.make.heads.pooling.base import valid_mask
from pipeline.make.text.base import LinearProjection


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
        squares = (values - mean).square().sum(0)
        return cls(len(values), mean, squares)

    @classmethod
    def of_all(cls, parts: Iterable[ItemMoments]) -> ItemMoments:
        """Combine moments (Chan et al. 1979), without the cancellation that sums of squares
        have.
        """
        whole, *rest = parts
        for other in rest:
            count = whole.count + other.count
            apart = other.mean - whole.mean
            mean = whole.mean + apart * (other.count / count)
            between = apart.square() * (whole.count * other.count / count)
            whole = cls(count, mean, whole.squares + other.squares + between)
        return whole


class ItemNorm(nn.BatchNorm1d):
    """BatchNorm of items [M, D]. In training it uses the moments of its input, or those given for
    the whole batch.
    """

    given: tuple[Tensor, Tensor] | None = None

    def give(self, moments: ItemMoments) -> None:
        """Use these moments from now on, and update the running statistics with them once."""
        mean = moments.mean.clone().requires_grad_()
        variance = (moments.squares / moments.count).requires_grad_()
        self.given = (mean, variance)
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        with torch.no_grad():
            unbiased = moments.squares / max(moments.count - 1, 1)
            self.running_mean.lerp_(moments.mean, self.momentum)
            self.running_var.lerp_(unbiased, self.momentum)
            self.num_batches_tracked += 1

    def forward(self, values: Tensor) -> Tensor:
        if not self.training or self.given is None:
            return super().forward(values)
        mean, variance = self.given
        normal = (values - mean) * (variance + self.eps).rsqrt()
        return (normal * self.weight + self.bias).to(values.dtype)

    def through_moments(self, values: Tensor, count: int) -> Tensor:
        """Build a scalar whose gradient at some rows [M, D] of the batch is the one through the
        given moments.

        With μ the mean and v the variance, dμ/dx = 1 / count and dv/dx = 2 (x − μ) / count.
        """
        assert self.given is not None
        mean, variance = self.given
        assert mean.grad is not None
        assert variance.grad is not None
        apart = values - mean.detach()
        return (mean.grad * values + variance.grad * apart.square()).sum() / count


class ResidualProjection(nn.Module):
    """A linear layer plus a two-layer MLP, width -> dimension / 2 -> dimension, for region
    features.

    From VSE∞'s implementation details; its released code has a BatchNorm in the hidden layer. Here
    its statistics are those of valid items alone, so that padding has no influence.
    """

    def __init__(self, width: int, dimension: int) -> None:
        super().__init__()
        hidden = max(1, dimension // 2)
        self.linear = LinearProjection(width, dimension)
        first = nn.Linear(width, hidden)
        second = nn.Linear(hidden, dimension)
        self.mlp = nn.Sequential(first, ItemNorm(hidden), nn.ReLU(), second)

    @property
    def norm(self) -> ItemNorm:
        """The BatchNorm of the hidden layer."""
        norm = self.mlp[1]
        assert isinstance(norm, ItemNorm)
        return norm

    def hidden(self, items: Tensor, counts: Tensor) -> Tensor:
        """Compute the hidden layer of the valid items before its BatchNorm: [M, dimension / 2]."""
        return self.mlp[0](self._present(items, _places(items, counts)))

    def forward(self, items: Tensor, counts: Tensor) -> Tensor:
        """Project items [B, N, width]: [B, N, dimension], padding zero."""
        valid_items = _places(items, counts)
        present = self._present(items, valid_items)
        projected = self.mlp(present).add_(self.linear(present, counts))
        samples, slots, _ = items.shape
        padded = projected.new_zeros(samples * slots, projected.shape[-1])
        padded.index_copy_(0, valid_items, projected)
        return padded.unflatten(0, (samples, slots))

    def _present(self, items: Tensor, valid_items: Tensor) -> Tensor:
        kind = items.device.type
        dtype = self.linear.linear.weight.dtype
        if torch.is_autocast_enabled(kind):
            dtype = torch.get_autocast_dtype(kind)
        present = items.flatten(0, 1).index_select(0, valid_items)
        if kind == "cpu" and dtype == torch.bfloat16:
            # On a CPU torch converts float16 to bfloat16 value by value; through float32 it uses
            # vector instructions.
            present = present.float()
        return present.to(dtype)


def _places(items: Tensor, counts: Tensor) -> Tensor:
    """The places of the valid items in the flattened batch, int64 [M]."""
    valid = valid_mask(items, counts).flatten()
    if is_exporting():
        # A graph cannot depend on values; in evaluation padding has no influence on the others.
        return torch.arange(valid.shape[0], device=items.device)
    return valid.nonzero().squeeze(1)


PROJECTIONS: dict[str, type[nn.Module]] = {
    "residual": ResidualProjection,
    "linear": LinearProjection,
}


def build(feature: str, width: int, dimension: int) -> nn.Module:
    """The projection of a feature: a module (items [B, N, width], counts [B]) -> [B, N,
    dimension].
    """
    if feature not in FEATURES:
        raise InputError(
            f"no projection for the feature {feature!r}; there are: {', '.join(FEATURES)}"
        )
    return PROJECTIONS[FEATURES[feature].projection](width, dimension)
