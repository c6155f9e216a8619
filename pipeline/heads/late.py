"""Late interaction: every word with every item of an image, one product each (ColBERT 2020, FILIP 2022; SCAN 2018)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from pipeline.errors import InputError
from pipeline.heads import projection
from pipeline.heads.backbone import Backbone
from pipeline.heads.base import HeadNetwork
from pipeline.heads.pooling.mask import valid_mask
from pipeline.settings import Recipe, Training
from pipeline.text import Text


class LateInteraction(HeadNetwork):
    """Unit vectors of words and items, whose products make a similarity.

    `max`: the mean over the words of each word's best item (FILIP's text-to-image similarity; ColBERT's sum, divided
    by the caption's length). `attention`: each word attends to the items, and is compared with the mean that it sees
    (SCAN's text-image attention, averaged: Lee et al. 2018, equations 1 to 5 with the sides exchanged).

    Args:
        feature: A name in `pipeline.features.FEATURES`.
        width: D of the items.
        text: Its encoder reads the captions.
        recipe: Not used.
        training: The sizes; d is `training.dimension`.
        backbone: None: items are read from a store.
        form: Which of the two.
        sharpness: λ of SCAN's attention.

    Raises:
        InputError: For a backbone.
    """

    def __init__(self, feature: str, width: int, text: Text, recipe: Recipe, training: Training,
                 backbone: Backbone | None = None, form: Literal["max", "attention"] = "max", sharpness: float = 9.0
                 ) -> None:
        super().__init__()
        if backbone is not None:
            raise InputError("late interaction reads stored features; leave out finetune")
        self.dimension, self.form, self.sharpness = training.dimension, form, sharpness
        self.projection = projection.build(feature, width, self.dimension)
        self.text = text.encoder(self.dimension, training)

    @property
    def pretrained(self) -> dict[str, nn.Module]:
        """The pretrained text encoder, as "text"."""
        part = getattr(self.text, "pretrained", None)
        return {"text": part} if isinstance(part, nn.Module) else {}

    def embed_images(self, items: Tensor, counts: Tensor, kept: Tensor | None = None) -> Tensor:
        """Embed every item.

        Args:
            items: Float [B, N, width].
            counts: Int64 [B].
            kept: Not used.

        Returns:
            Unit vectors [B, N, d], padding zero.
        """
        return _units(self.projection(items, counts), counts)

    def embed_captions(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Embed every word.

        Args:
            tokens: Int64 [B, T].
            lengths: Int64 [B].

        Returns:
            Unit vectors [B, T, d], padding zero.
        """
        return _units(self.text(tokens, lengths), lengths)

    def similarity(self, items: Tensor, counts: Tensor, words: Tensor, lengths: Tensor) -> Tensor:
        """Compare all images with all captions.

        Args:
            items: Unit vectors [I, N, d].
            counts: Int64 [I].
            words: Unit vectors [C, T, d].
            lengths: Int64 [C].

        Returns:
            Float32 [I, C], each from -1 to 1.
        """
        with torch.autocast(items.device.type, enabled=False):
            products = torch.einsum("ind,ctd->ictn", items.float(), words.float())
            return self._compared(products, items.float(), counts[:, None], lengths[None])

    def pairs(self, items: Tensor, counts: Tensor, words: Tensor, lengths: Tensor) -> Tensor:
        """Compare images with captions one by one.

        Args:
            items: Unit vectors [P, N, d].
            counts: Int64 [P].
            words: Unit vectors [P, T, d].
            lengths: Int64 [P].

        Returns:
            Float32 [P].
        """
        with torch.autocast(items.device.type, enabled=False):
            products = (words.float() @ items.float().transpose(1, 2))[:, None]
            return self._compared(products, items.float(), counts[:, None], lengths[:, None])[:, 0]

    def _compared(self, products: Tensor, items: Tensor, counts: Tensor, lengths: Tensor) -> Tensor:
        """[I, C] of products [I, C, T, N], items [I, N, d], counts [I, 1] and lengths that broadcast to [I, C]."""
        item = torch.arange(products.shape[3], device=products.device) < counts[..., None]  # [I, 1, N]
        word = torch.arange(products.shape[2], device=products.device) < lengths[..., None]  # [., C, T]
        if self.form == "max":
            best = products.masked_fill(~item[:, :, None], float("-inf")).amax(3)
        else:
            best = self._attended(products, items, item[:, :, None], word[..., None])
        return best.masked_fill(~word, 0.0).sum(2) / lengths

    def _attended(self, products: Tensor, items: Tensor, item: Tensor, word: Tensor) -> Tensor:
        """[I, C, T]: each word with the mean of the items, weighted by its attention."""
        positive = products.clamp(min=0).masked_fill(~word, 0.0)
        weights = self.sharpness * normalize(positive, dim=2)  # over a caption's words
        weights = weights.masked_fill(~item, float("-inf")).softmax(3)
        gram = items @ items.transpose(1, 2)  # of the mean's length, without making the mean
        length = ((weights @ gram[:, None]) * weights).sum(3).clamp(min=1e-12).sqrt()
        return (weights * products).sum(3) / length


def _units(vectors: Tensor, counts: Tensor) -> Tensor:
    valid = valid_mask(vectors, counts)
    return normalize(vectors.masked_fill(~valid[..., None], 0.0), dim=-1)
