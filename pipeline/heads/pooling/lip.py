"""Local importance pooling (LIP; Gao et al. 2019), a baseline of VSE+2AD Table 4."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pipeline.heads.pooling.base import Pooling, masked_softmax
from pipeline.heads.pooling.mean import mean_over_items


class LIPPool(Pooling):
    """Each dimension averaged with weights exp(G), where the importance G is learned from the items.

    G is the simplified variant of Gao et al.: a projection, normalised over the items of each sample (with a
    learned scale and shift), then 12 · sigmoid. Items have no neighbours, so the projection is 1 × 1. The
    projection sums over dimensions, so it overflows for items near the greatest float.

    Args:
        dim: D.
        amplification: The greatest importance; Gao et al. use 12.
    """

    title = "LIP"
    paper = "Gao et al. 2019"

    def __init__(self, dim: int, amplification: float = 12.0) -> None:
        super().__init__(dim)
        self.project = nn.Linear(dim, dim, bias=False)
        self.scale = nn.Parameter(torch.ones(dim))
        self.shift = nn.Parameter(torch.zeros(dim))
        self.amplification = amplification

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        normal = normalise_over_items(self.project(items), valid)
        importance = self.amplification * (normal * self.scale + self.shift).sigmoid()
        return (masked_softmax(importance, valid.unsqueeze(2), dim=1) * items).sum(1)


def normalise_over_items(values: Tensor, valid: Tensor) -> Tensor:
    """Normalise [B, N, D] to zero mean and unit variance over a sample's valid items; padding is zero."""
    present = valid.unsqueeze(2)
    values = values.masked_fill(~present, 0.0)
    # The result does not depend on the scale, but squares may overflow: each dimension is divided by its greatest.
    scale = values.detach().abs().amax(1, keepdim=True).clamp(min=1.0)
    values = values / scale
    centred = (values - mean_over_items(values, valid).unsqueeze(1)).masked_fill(~present, 0.0)
    variance = mean_over_items(centred.square(), valid).unsqueeze(1)
    # At the least what is far below rounding, so that equal values have finite gradients.
    return centred * torch.rsqrt(variance + (1e-5 / scale.square()).clamp(min=1e-24))
