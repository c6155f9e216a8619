"""SoftPool (Stergiou et al. 2021): a baseline of VSE+2AD Table 4, and half of AdPool."""

from __future__ import annotations

from torch import Tensor

from pipeline.heads.pooling.base import Pooling, masked_softmax


class SoftPool(Pooling):
    """Per dimension, the items' values weighted by their softmax over the items. No parameters."""

    title = "SoftPool"
    paper = "Stergiou et al. 2021"

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        return soft_maximum(items, valid)


def soft_maximum(items: Tensor, valid: Tensor) -> Tensor:
    """Σ_i softmax_i(t_ij) t_ij over the valid items: items [B, N, D], valid bool [B, N], to [B, D]."""
    return (masked_softmax(items, valid.unsqueeze(2), dim=1) * items).sum(1)
