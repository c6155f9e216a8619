"""The interfaces of a head's network, and of the network that makes its features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn
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


class HeadNetwork(nn.Module, ABC):
    """The base class of networks that embed images and captions in one space.

    Attributes:
        dimension: d of the vectors.
        backbone: The network that makes the features, if it is trained with the head.
    """

    dimension: int
    backbone: Backbone | None

    def __init__(self) -> None:
        super().__init__()
        self.backbone = None

    @property
    def pretrained(self) -> dict[str, nn.Module]:
        """The pretrained parts by name: "text" (of the encoder `text`, if there is one), "backbone"."""
        parts = {"text": getattr(getattr(self, "text", None), "pretrained", None), "backbone": self.backbone}
        return {name: part for name, part in parts.items() if isinstance(part, nn.Module)}

    @property
    def sides_are_apart(self) -> bool:
        """Whether the sides share no weight, draw nothing at random, and take about as long as each other."""
        return False

    @abstractmethod
    def embed_images(self, items: Tensor, counts: Tensor, kept: Tensor | None = None) -> Tensor:
        """Embed images.

        Args:
            items: Float [B, N, width]; with a backbone prepared pixels [B, S, S, 3].
            counts: Int64 [B].
            kept: With a backbone, int64 [B, N'], the indices of the items that are pooled; None for all.

        Returns:
            Unit vectors [B, d].
        """

    @abstractmethod
    def embed_captions(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Embed captions.

        Args:
            tokens: Int64 [B, T].
            lengths: Int64 [B], each from 1 to T.

        Returns:
            Unit vectors [B, d].
        """
