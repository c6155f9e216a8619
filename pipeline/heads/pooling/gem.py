"""Generalized-mean pooling (GeM; Radenović et al. 2019), a baseline of VSE∞ 5.2."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from pipeline.heads.pooling.base import Pooling
from pipeline.parts.errors import InputError


class GeMPool(Pooling):
    """(mean over the items of x^p)^(1/p) per dimension, with one learned p for all dimensions.

    A power mean is defined for positive values, so values below `floor` count as `floor` (as in the published
    method). Computed from logarithms, as exp(logsumexp(p log x) − log n)^(1/p), for x^p overflows and its
    root has an unbounded gradient at zero; that is what made the published code diverge on regions (VSE∞
    5.2). p is exp(log_p), so it stays positive.

    Args:
        dim: D.
        p: Where p starts; Radenović et al. use 3.
        floor: The least value that counts.
    """

    title = "GeM"
    paper = "Radenović et al. 2019"

    def __init__(self, dim: int, p: float = 3.0, floor: float = 1e-6) -> None:
        super().__init__(dim)
        if not (p > 0 and floor > 0):
            raise InputError(f"gem needs positive p and floor, got p={p} and floor={floor}")
        self.log_p = nn.Parameter(torch.tensor(math.log(p)))
        self.floor = floor

    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        p = self.log_p.exp()
        powers = p * items.clamp(min=self.floor).log()
        total = powers.masked_fill(~valid.unsqueeze(2), float("-inf")).logsumexp(1)
        return ((total - valid.sum(1, keepdim=True).log()) / p).exp()
