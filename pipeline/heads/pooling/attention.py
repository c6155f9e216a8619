"""Attention by one linear layer: how HGR pools frames and words into its global vectors (Chen et al., CVPR 2020)."""

from __future__ import annotations

from torch import Tensor, nn

from pipeline.heads.pooling.base import Pooling, masked_softmax


class AttentionPool(Pooling):
    """The mean of the items, weighted by the softmax of a linear function of each: D + 1 parameters."""

    title = "Attention"
    paper = "HGR, sections 3.1 and 3.2"

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.score = nn.Linear(dim, 1)

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        weights = masked_softmax(self.score(items), valid.unsqueeze(2), dim=1)
        return (weights * items).sum(1)
