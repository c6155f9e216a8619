"""The interfaces of a head's network, of one that compares parts, and of the network that makes its
features.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from pipeline.foundation.evaluation.retrieval.blocks import Ids
from pipeline.foundation.parts.errors import InputError
from pipeline.make.heads.sides import Side
from pipeline.make.text import Text


class Backbone(nn.Module):
    """A network that is trained with a head, and the function from prepared pixels to items.

    Its BatchNorm statistics are fixed (VSE∞ A.1), their scales and shifts are learned. As in the
    papers, the network is first frozen and then trained as a whole, while the learning rate rises.
    VSE∞'s released code can also unfreeze it block by block, which makes the loss rise. items: from
    pixels [B, S, S, 3] to items [B, N, D], through the network.
    """

    def __init__(
        self, name: str, network: nn.Module, items: Callable[[torch.Tensor], torch.Tensor]
    ) -> None:
        super().__init__()
        self.name = name
        self._items = items
        reset = getattr(network, "reset_classifier", None)
        if callable(reset):
            reset(0)  # the classifier of timm's networks is not used
        self.network = network.requires_grad_(True)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """The items [B, N, D] of pixels [B, S, S, 3]."""
        return self._items(pixels)

    def train(self, mode: bool = True) -> "Backbone":
        super().train(mode)
        for module in self.network.modules():
            if isinstance(module, _BatchNorm):
                module.eval()
        return self


def require_stored_features(backbone: Backbone | None, head: str) -> None:
    """Refuse to train the network that makes the features. head: what cannot, in a message."""
    if backbone is not None:
        raise InputError(f"{head} reads stored features; leave out finetune")


class HeadNetwork(nn.Module, ABC):
    """The base class of networks that embed images and captions in one space."""

    dimension: int  # d of the vectors
    backbone: Backbone | None  # the network that makes the features, if it is trained with the head

    def __init__(self) -> None:
        super().__init__()
        self.backbone = None

    @property
    def pretrained(self) -> dict[str, nn.Module]:
        """The pretrained parts by name: "text" (of the encoder `text`, if there is one),
        "backbone".
        """
        text = getattr(self, "text", None)
        parts = {"text": getattr(text, "pretrained", None), "backbone": self.backbone}
        return {name: part for name, part in parts.items() if isinstance(part, nn.Module)}

    @property
    def can_run_in_parallel(self) -> bool:
        """Whether both sides can be encoded in parallel: no shared weight, no random draws, about
        equal times.
        """
        return False

    @abstractmethod
    def embed_images(self, images: Side) -> Tensor:
        """The unit vectors [B, d] of B images."""

    @abstractmethod
    def embed_captions(self, captions: Side) -> Tensor:
        """The unit vectors [B, d] of B captions."""


# The parts of B images or captions: tensors of which each has B rows.
Parts = tuple[Tensor, ...]
# From B of the captions that were read and the width T of their padded token ids to the further
# input of these: tensors of which each has B rows.
FurtherBatch = Callable[[Ids, int], Parts]


class CaptionReading(ABC):
    """How a head reads a further input of captions, such as role graphs."""

    column: str  # of the manifest, a key of `CAPTION_INPUTS`

    @abstractmethod
    def require(self, captions: Collection[str], given: Collection[str] | None) -> None:
        """Check that all captions have the input. given: the column; None without one."""

    @abstractmethod
    def read(
        self, text: Text, captions: Collection[str], given: Collection[str] | None
    ) -> FurtherBatch:
        """The input of captions, checked, batch by batch.

        text: makes the captions' token ids; given: the column; None without one.
        """


class Interaction(HeadNetwork):
    """The base class of late interaction: both sides are encoded separately, then their parts are
    compared.
    """

    caption_reading: ClassVar[CaptionReading | None] = None  # of a further input of captions

    @abstractmethod
    def image_parts(self, images: Side) -> Parts:
        """The encoded parts of B images."""

    @abstractmethod
    def caption_parts(self, captions: Side) -> Parts:
        """The encoded parts of B captions, which have the input that `caption_reading` reads."""

    @abstractmethod
    def compare(self, images: Parts, captions: Parts, paired: bool) -> Tensor:
        """The similarities, float32 [I, C] from -1 to 1, of all images and captions; it is called
        without autocast.

        paired: whether each image is compared with one caption: [I, 1].
        """

    def similarity(self, images: Parts, captions: Parts, paired: bool = False) -> Tensor:
        """Compare all images with all captions, in float32: [I, C]."""
        with torch.autocast(images[0].device.type, enabled=False):
            return self.compare(images, captions, paired)

    def pairs(self, images: Parts, captions: Parts) -> Tensor:
        """Compare images with captions one by one, in float32: [P]."""
        return self.similarity(images, captions, paired=True)[:, 0]

    @abstractmethod
    def products(self, images: Parts, captions: Parts) -> int:
        """The products of parts of images and captions that `similarity` holds in memory for each
        image.
        """

    def embed_images(self, images: Side) -> Tensor:
        """Refuse to embed images, which have no vector, see `HeadNetwork.embed_images`."""
        raise InputError("late interaction has no vector of an image; score pairs with it")

    def embed_captions(self, captions: Side) -> Tensor:
        """Refuse to embed captions, which have no vector, see `HeadNetwork.embed_captions`."""
        raise InputError("late interaction has no vector of a caption; score pairs with it")


def all_products(queries: Tensor, items: Tensor, paired: bool) -> Tensor:
    """The products of all queries [C, Q, d] with all items [I, N, d]: [I, C, Q, N].

    paired: whether each image is compared with one caption: [I, 1, Q, N].
    """
    if paired:
        return (queries @ items.transpose(1, 2))[:, None]
    return torch.einsum("ind,cqd->icqn", items, queries)


def cosine_with_attended(products: Tensor, logits: Tensor, items: Tensor, counts: Tensor) -> Tensor:
    """Compare each query with the attended mean of the items [I, N, d], of which counts [I] are
    valid, without computing that mean: [I, C, Q].

    Products of unit queries with items and logits of the attention are [I, C, Q, N].
    """
    valid = valid_slots(counts, items.shape[1])[:, None, None]
    weights = logits.masked_fill(~valid, float("-inf")).softmax(3)
    gram = items @ items.transpose(1, 2)
    square = ((weights @ gram[:, None]) * weights).sum(3)
    length = square.clamp(min=1e-12).sqrt()
    return (weights * products).sum(3) / length


def valid_slots(counts: Tensor, slots: int) -> Tensor:
    """Mark which of N slots hold an item: bool, the shape of the counts and [N]."""
    return torch.arange(slots, device=counts.device) < counts[..., None]
