"""AdaPool, exponential adaptive pooling (Stergiou and Poppe 2021), a baseline of VSE+2AD Table 4."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pipeline.heads.pooling.base import Pooling, masked_softmax
from pipeline.heads.pooling.mean import mean_over_items
from pipeline.heads.pooling.softpool import soft_maximum


class AdaPool(Pooling):
    """A learned mixture β · eDSCW + (1 − β) · eM of two exponential averages, each per dimension.

    eM weighs by the softmax of the values (SoftPool). eDSCW weighs by the softmax of the values'
    Dice-Sørensen coefficient with their mean, 2 x x̄ / (x² + x̄²), and so prefers values close to the mean.
    The original learns one β for each output position; a set has one. β is a sigmoid, which starts at one
    half; the original clamps it to 0..1, where it stops learning once it reaches a bound.
    """

    title = "AdaPool"
    paper = "Stergiou and Poppe 2021"

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.beta_logit = nn.Parameter(torch.zeros(()))

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        closeness = masked_softmax(closeness_to_mean(items, valid), valid.unsqueeze(2), dim=1)
        near_mean = (closeness * items).sum(1)
        return torch.lerp(soft_maximum(items, valid), near_mean, self.beta_logit.sigmoid())


def closeness_to_mean(items: Tensor, valid: Tensor) -> Tensor:
    """Compute each value's Dice-Sørensen coefficient with its dimension's mean: [B, N, D], in −1..1."""
    mean = mean_over_items(items, valid).unsqueeze(1)
    # A quotient of squares, which may overflow, stays the same when all is divided by the greater of the two.
    scale = items.detach().abs().maximum(mean.detach().abs()).clamp(min=1.0)
    items, mean = items / scale, mean / scale
    # The constant keeps 0 / 0 out, and the gradient near zero bounded.
    return 2 * items * mean / (items.square() + mean.square() + 1e-6 / scale.square())
