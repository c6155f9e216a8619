"""The interface of heads that compare parts of an image with parts of a caption, and have no vector of either."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from pipeline.errors import InputError
from pipeline.heads.base import HeadNetwork
from pipeline.text.role_graphs import GraphBatch

Parts = tuple[Tensor, ...]
"""The parts of B images or captions: tensors of which each has B rows."""


class Interaction(HeadNetwork):
    """The base class of late interaction: both sides are encoded apart, then their parts are compared."""

    reads_graphs: ClassVar[bool] = False

    @abstractmethod
    def image_parts(self, items: Tensor, counts: Tensor) -> Parts:
        """Encode images.

        Args:
            items: Float [B, N, width].
            counts: Int64 [B].

        Returns:
            Their parts.
        """

    @abstractmethod
    def caption_parts(self, tokens: Tensor, lengths: Tensor, graphs: GraphBatch | None = None) -> Parts:
        """Encode captions.

        Args:
            tokens: Int64 [B, T].
            lengths: Int64 [B].
            graphs: Their role graphs, where the network reads them.

        Returns:
            Their parts.
        """

    @abstractmethod
    def similarity(self, images: Parts, captions: Parts) -> Tensor:
        """Compare all images with all captions.

        Args:
            images: The parts of I images.
            captions: The parts of C captions.

        Returns:
            Float32 [I, C], each from -1 to 1.
        """

    @abstractmethod
    def pairs(self, images: Parts, captions: Parts) -> Tensor:
        """Compare images with captions one by one.

        Args:
            images: The parts of P images.
            captions: The parts of P captions.

        Returns:
            Float32 [P].
        """

    @abstractmethod
    def products(self, images: Parts, captions: Parts) -> int:
        """Count what `similarity` holds in memory, so that it is called with as many images as there is room for.

        Args:
            images: The parts of I images.
            captions: The parts of C captions.

        Returns:
            Products of parts for each image.
        """

    def embed_images(self, items: Tensor, counts: Tensor, kept: Tensor | None = None) -> Tensor:
        """Refuse to embed images, which have no vector, see `HeadNetwork.embed_images`."""
        raise InputError("late interaction has no vector of an image; score pairs with it")

    def embed_captions(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Refuse to embed captions, which have no vector, see `HeadNetwork.embed_captions`."""
        raise InputError("late interaction has no vector of a caption; score pairs with it")


def cosine_with_attended(products: Tensor, weights: Tensor, items: Tensor) -> Tensor:
    """Compare queries with the mean of the items [I, N, d] that each attends to, without making that mean: [I, C, Q].

    Products of unit queries with items and weights of attention, 0 for padding, are [I, C, Q, N].
    """
    gram = items @ items.transpose(1, 2)
    length = ((weights @ gram[:, None]) * weights).sum(3).clamp(min=1e-12).sqrt()
    return (weights * products).sum(3) / length


def valid_slots(counts: Tensor, slots: int) -> Tensor:
    """Mark which of N slots hold an item: bool, the shape of the counts and [N]."""
    return torch.arange(slots, device=counts.device) < counts[..., None]
