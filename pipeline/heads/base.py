"""The interface of a head's network."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from pipeline.heads.backbone import Backbone


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
