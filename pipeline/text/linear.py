"""A linear layer from an encoder's items to the joint space."""

from __future__ import annotations

import torch
from torch import nn


class LinearProjection(nn.Module):
    """One linear layer, for grid and patch features and for BERT's tokens (VSE+2AD eq. 1)."""

    def __init__(self, width: int, dimension: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, dimension)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, items: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """Project items [B, N, width]: [B, N, dimension]. Padded values are unspecified."""
        autocast = torch.is_autocast_enabled(items.device.type)
        return self.linear(items if autocast else items.to(self.linear.weight.dtype))
