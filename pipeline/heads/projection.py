"""Projections from an encoder's items to the joint space."""

import torch
from torch import nn

from pipeline.heads.batch_norm import ItemNorm
from pipeline.heads.pooling.base import valid_mask
from pipeline.parts.errors import InputError
from pipeline.settings.features import FEATURES
from pipeline.text.base import LinearProjection


class ResidualProjection(nn.Module):
    """A linear layer plus a two-layer MLP, width -> dimension / 2 -> dimension, for region features.

    From VSE∞'s implementation details; its released code has a BatchNorm in the hidden layer. Here its statistics are
    those of valid items alone, so that padding has no influence.
    """

    def __init__(self, width: int, dimension: int) -> None:
        super().__init__()
        hidden = max(1, dimension // 2)
        self.linear = LinearProjection(width, dimension)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), ItemNorm(hidden), nn.ReLU(), nn.Linear(hidden, dimension))

    @property
    def norm(self) -> ItemNorm:
        """The BatchNorm of the hidden layer."""
        norm = self.mlp[1]
        assert isinstance(norm, ItemNorm)
        return norm

    def hidden(self, items: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """Compute the hidden layer of the valid items before its BatchNorm: [M, dimension / 2]."""
        return self.mlp[0](self._present(items, _places(items, counts)))

    def forward(self, items: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """Project items [B, N, width]: [B, N, dimension], padding zero."""
        places = _places(items, counts)
        present = self._present(items, places)
        projected = self.mlp(present).add_(self.linear(present, counts))
        padded = projected.new_zeros(items[..., 0].numel(), projected.shape[-1])
        return padded.index_copy_(0, places, projected).unflatten(0, items.shape[:2])

    def _present(self, items: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """The valid items [M, width], in the type that is multiplied."""
        kind = items.device.type
        autocast = torch.is_autocast_enabled(kind)
        dtype = torch.get_autocast_dtype(kind) if autocast else self.linear.linear.weight.dtype
        present = items.flatten(0, 1).index_select(0, places)
        # On a CPU torch converts float16 to bfloat16 one by one, and by way of float32 with vector instructions.
        return present.float().to(dtype) if kind == "cpu" and dtype == torch.bfloat16 else present.to(dtype)


def _places(items: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Where the valid items stand in the flattened batch, int64 [M]."""
    return valid_mask(items, counts).flatten().nonzero().squeeze(1)


PROJECTIONS: dict[str, type[nn.Module]] = {"residual": ResidualProjection, "linear": LinearProjection}


def build(feature: str, width: int, dimension: int) -> nn.Module:
    """The projection of a feature: a module (items [B, N, width], counts [B]) -> [B, N, dimension]."""
    if feature not in FEATURES:
        raise InputError(f"no projection for the feature {feature!r}; there are: {', '.join(FEATURES)}")
    return PROJECTIONS[FEATURES[feature].projection](width, dimension)
