"""From an encoder's items to items of the joint space."""

from __future__ import annotations

import torch
from torch import nn

from pipeline.errors import InputError
from pipeline.heads.pooling.mask import valid_mask


class LinearProjection(nn.Module):
    """One linear layer: grid and patch features, and BERT's tokens (VSE+2AD eq. 1)."""

    def __init__(self, width: int, dimension: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, dimension)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, items: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """items [B, N, width], counts [B]. Returns [B, N, dimension]; padding is whatever it is."""
        return self.linear(items)


class ResidualProjection(nn.Module):
    """A linear layer plus a two-layer MLP, width -> dimension / 2 -> dimension: region features.

    VSE-infinity, implementation details; its released code normalises the hidden layer by batch. Here the
    statistics are those of valid items alone, so that padding changes nothing.
    """

    def __init__(self, width: int, dimension: int) -> None:
        super().__init__()
        hidden = max(1, dimension // 2)
        self.linear = LinearProjection(width, dimension)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.BatchNorm1d(hidden), nn.ReLU(),
                                 nn.Linear(hidden, dimension))

    def forward(self, items: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """items [B, N, width], counts [B]. Returns [B, N, dimension]; padding is zero."""
        valid = valid_mask(items, counts)
        projected = self.linear(items[valid], counts) + self.mlp(items[valid])
        out = projected.new_zeros(*items.shape[:2], projected.shape[-1])
        out[valid] = projected
        return out


PROJECTIONS: dict[str, type[nn.Module]] = {"region": ResidualProjection, "grid": LinearProjection,
                                           "patch": LinearProjection}


def build(feature: str, width: int, dimension: int) -> nn.Module:
    """The projection of a feature: (items [B, N, width], counts [B]) -> [B, N, dimension]."""
    if feature not in PROJECTIONS:
        raise InputError(f"no projection for the feature {feature!r}; there are: {', '.join(PROJECTIONS)}")
    return PROJECTIONS[feature](width, dimension)
