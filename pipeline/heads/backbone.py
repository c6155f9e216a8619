"""A feature network inside a head, trained end to end from pixels (VSE-infinity 5.1.1 and A.1, VSE+2AD section 4.2)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


class Backbone(nn.Module):
    """A network, and how what it makes of prepared pixels becomes items.

    Its BatchNorm statistics are fixed (VSE-infinity A.1); their scales and shifts learn. As in the papers, it is frozen
    at first and then learns as a whole, while the rate rises; VSE-infinity's released code can free it block by block,
    and has the loss rise instead. name: the network's.
    items: from pixels [B, S, S, 3] to [B, N, D], through the network.
    """

    def __init__(self, name: str, network: nn.Module, items: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.name, self._items = name, items
        if callable(reset := getattr(network, "reset_classifier", None)):
            reset(0)  # timm's classes take no part here
        self.network = network.requires_grad_(True)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Prepared images [B, S, S, 3] to items [B, N, D]."""
        return self._items(pixels)

    def train(self, mode: bool = True) -> Backbone:
        super().train(mode)
        for module in self.network.modules():
            if isinstance(module, _BatchNorm):
                module.eval()
        return self
