"""Random similarities of a batch, and the contrastive loss written out as loops in float64."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def cosines(batch: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """The similarity of random pairs that agree somewhat, as in the middle of training."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.randn(batch, 16, generator=generator, dtype=torch.float64)
    captions = images + torch.randn(batch, 16, generator=generator, dtype=torch.float64)
    images, captions = (torch.nn.functional.normalize(x, dim=1) for x in (images, captions))
    return (images @ captions.T).to(dtype)


def contrast_by_loops(similarity: Tensor, k: int, temperature: float, with_positive: bool) -> float:
    """VSE+2AD 3.3: InfoNCE over the K hardest negatives, both directions."""
    total = 0.0
    for matrix in (similarity, similarity.T):
        for i, row in enumerate(matrix.tolist()):
            negatives = sorted((s for j, s in enumerate(row) if j != i), reverse=True)[:k]
            denominator = sum(
                math.exp(s / temperature) for s in negatives + [row[i]] * with_positive
            )
            total -= math.log(math.exp(row[i] / temperature) / denominator) / len(similarity)
    return total
