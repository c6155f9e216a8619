"""Weighted means of the items: mean pooling (MeanPool of VSE+2AD 3.2.1, AvgPool of VSE∞ 3.2) and
others.
"""

import math

import torch
from torch import Tensor, nn

from pipeline.make.heads.pooling.base import Pooling, masked_softmax
from pipeline.make.heads.pooling.options import GeMPoolOptions, LIPPoolOptions


class MeanPool(Pooling):
    """The mean of each dimension over the items. No parameters. Source: VSE+2AD, section 3.2.1."""

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        return mean_over_items(items, valid)


def mean_over_items(items: Tensor, valid: Tensor) -> Tensor:
    """Compute the mean over a sample's valid items: [B, D]."""
    present = items.masked_fill(~valid.unsqueeze(2), 0.0)
    counts = valid.sum(1).view(-1, 1, 1)
    # The division comes first, since the sum may overflow.
    return (present / counts).sum(1)


# The first item as the result, in the way BERT's CLS token is used (VSE∞ 5.2 and Table 6).
class CLSPool(Pooling):
    """The first item: BERT's and ViT's CLS token, or a BiGRU's first word. Depends on the items'
    order.

    Source: VSE∞, section 5.2.
    """

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        return items[:, 0]


# SoftPool (Stergiou et al. 2021): a baseline of VSE+2AD Table 4, and half of AdPool.
class SoftPool(Pooling):
    """The items' values, weighted by their softmax over the items, per dimension. No parameters.

    Source: Stergiou et al. 2021.
    """

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        return soft_maximum(items, valid)


def soft_maximum(items: Tensor, valid: Tensor) -> Tensor:
    """Compute Σ_i softmax_i(t_ij) t_ij over the valid items: [B, D].

    Values are taken relative to the greatest item, so that no precision is lost, also in the
    gradient, if all items are large.
    """
    valid = valid.unsqueeze(2)
    # Detached, since the result does not depend on it.
    greatest = items.detach().masked_fill(~valid, float("-inf")).amax(1, keepdim=True)
    below = items - greatest
    weights = masked_softmax(below, valid, dim=1)
    pooled = greatest + (weights * below).sum(1, keepdim=True)
    return pooled.squeeze(1)


# AdaPool, exponential adaptive pooling (Stergiou and Poppe 2021), a baseline of VSE+2AD Table 4.
class AdaPool(Pooling):
    """A learned mixture β · eDSCW + (1 − β) · eM of two exponential averages, each per dimension.

    eM weighs by the softmax of the values (SoftPool). eDSCW weighs by the softmax of the values'
    Dice-Sørensen coefficient with their mean, 2 x x̄ / (x² + x̄²), and so prefers values close to
    the mean. The original learns one β for each output position; a set has one. β is a sigmoid,
    which starts at one half; the original clamps it to 0..1, where it stops learning once it
    reaches a bound.

    Source: Stergiou and Poppe 2021.
    """

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.beta_logit = nn.Parameter(torch.zeros(()))

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        closeness = closeness_to_mean(items, valid)
        weights = masked_softmax(closeness, valid.unsqueeze(2), dim=1)
        near_mean = (weights * items).sum(1)
        maximum = soft_maximum(items, valid)
        return torch.lerp(maximum, near_mean, self.beta_logit.sigmoid())


def closeness_to_mean(items: Tensor, valid: Tensor) -> Tensor:
    """Compute each value's Dice-Sørensen coefficient with its dimension's mean: [B, N, D], in
    −1..1.
    """
    mean = mean_over_items(items, valid).unsqueeze(1)
    # Squares may overflow, so value and mean are divided by the greater one; the quotient stays the
    # same.
    greater = items.detach().abs().maximum(mean.detach().abs())
    scale = greater.clamp(min=1.0)
    items = items / scale
    mean = mean / scale
    # The constant avoids 0 / 0 and bounds the gradient near zero.
    squares = items.square() + mean.square() + 1e-6 / scale.square()
    return 2 * items * mean / squares


# Generalized-mean pooling (GeM; Radenović et al. 2019), a baseline of VSE∞ 5.2.
class GeMPool(Pooling):
    """(mean over the items of x^p)^(1/p) per dimension, with one learned p for all dimensions.

    A power mean is defined for positive values, so values below `floor` count as `floor` (as in the
    published method). It is computed from logarithms, as exp(logsumexp(p log x) − log n)^(1/p),
    because x^p overflows and its root has an unbounded gradient at zero; this made the published
    code diverge on regions (VSE∞ 5.2). p is exp(log_p), so it stays positive.

    Source: Radenović et al. 2019.
    """

    def __init__(self, dim: int, options: GeMPoolOptions) -> None:
        super().__init__(dim)
        self.log_p = nn.Parameter(torch.tensor(math.log(options.p)))
        self.floor = options.floor

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        p = self.log_p.exp()
        powers = p * items.clamp(min=self.floor).log()
        present = powers.masked_fill(~valid.unsqueeze(2), float("-inf"))
        total = present.logsumexp(1)
        mean = total - valid.sum(1, keepdim=True).log()
        return (mean / p).exp()


# Local importance pooling (LIP; Gao et al. 2019), a baseline of VSE+2AD Table 4.
class LIPPool(Pooling):
    """Each dimension averaged with weights exp(G), where the importance G is learned from the
    items.

    G is the simplified variant of Gao et al.: a projection, normalised over the items of each
    sample (with a learned scale and shift), then 12 · sigmoid. Items have no neighbours, so the
    projection is 1 × 1. The projection sums over dimensions, so it overflows for items near the
    greatest float.

    Source: Gao et al. 2019.
    """

    def __init__(self, dim: int, options: LIPPoolOptions) -> None:
        super().__init__(dim)
        self.project = nn.Linear(dim, dim, bias=False)
        self.scale = nn.Parameter(torch.ones(dim))
        self.shift = nn.Parameter(torch.zeros(dim))
        self.amplification = options.amplification

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        normal = normalise_over_items(self.project(items), valid)
        importance = self.amplification * (normal * self.scale + self.shift).sigmoid()
        weights = masked_softmax(importance, valid.unsqueeze(2), dim=1)
        return (weights * items).sum(1)


def normalise_over_items(values: Tensor, valid: Tensor) -> Tensor:
    """Normalise [B, N, D] to zero mean and unit variance over a sample's valid items; padding is
    zero.
    """
    present = valid.unsqueeze(2)
    values = values.masked_fill(~present, 0.0)
    # Squares may overflow, so each dimension is divided by its greatest value; the result does not
    # depend on it.
    scale = values.detach().abs().amax(1, keepdim=True).clamp(min=1.0)
    values = values / scale
    mean = mean_over_items(values, valid).unsqueeze(1)
    centred = (values - mean).masked_fill(~present, 0.0)
    variance = mean_over_items(centred.square(), valid).unsqueeze(1)
    # The lower bound is far below rounding; it keeps gradients of equal values finite.
    least = (1e-5 / scale.square()).clamp(min=1e-24)
    return centred * torch.rsqrt(variance + least)
