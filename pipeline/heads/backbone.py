"""A feature network inside a head, trained end to end from pixels (VSE∞ 5.1.1 and A.1, VSE+2AD section 4.2)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


class Backbone(nn.Module):
    """A network, and the function from prepared pixels to items.

    Its BatchNorm statistics are fixed (VSE∞ A.1), their scales and shifts are learned. As in the papers, the network is
    first frozen and then trained as a whole, while the learning rate rises. VSE∞'s released code can also unfreeze it
    block by block, which makes the loss rise.

    Args:
        name: The network's name.
        network: The network.
        items: From pixels [B, S, S, 3] to items [B, N, D], through the network.
    """

    def __init__(self, name: str, network: nn.Module, items: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.name, self._items = name, items
        if callable(reset := getattr(network, "reset_classifier", None)):
            reset(0)  # timm's classes take no part here
        self.network = network.requires_grad_(True)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute items.

        Args:
            pixels: Prepared images [B, S, S, 3].

        Returns:
            [B, N, D].
        """
        return self._items(pixels)

    def train(self, mode: bool = True) -> Backbone:
        super().train(mode)
        for module in self.network.modules():
            if isinstance(module, _BatchNorm):
                module.eval()
        return self
