"""Late interaction: every word with every item of an image, one product each (ColBERT 2020, FILIP
2022; SCAN 2018).
"""

from torch import Tensor, nn
from torch.nn.functional import normalize

from pipeline.foundation.settings import Recipe, Training
from pipeline.make.heads import projection
from pipeline.make.heads.base import (
    Backbone,
    Interaction,
    Parts,
    all_products,
    cosine_with_attended,
    require_stored_features,
    valid_slots,
)
from pipeline.make.heads.options import LateInteractionOptions
from pipeline.make.heads.pooling.base import valid_mask
from pipeline.make.heads.sides import Side
from pipeline.make.text import Text, with_dropout


class LateInteraction(Interaction):
    """Unit vectors of words and items, whose products make a similarity.

    `max`: the mean over the words of each word's best item (FILIP's text-to-image similarity;
        ColBERT's sum, divided by the caption's length). `attention`: each word attends to the
        items, and is compared with their attended mean (SCAN's text-image attention, averaged: Lee
        et al. 2018, equations 1 to 5 with the sides exchanged). d is `training.dimension`.
    """

    def __init__(
        self,
        feature: str,
        width: int,
        text: Text,
        recipe: Recipe,
        training: Training,
        backbone: Backbone | None,
        options: LateInteractionOptions,
    ) -> None:
        super().__init__()
        require_stored_features(backbone, "late interaction")
        self.dimension = training.dimension
        self.form = options.form
        self.sharpness = options.sharpness
        self.projection = projection.build(feature, width, self.dimension)
        self.dropout = nn.Dropout(recipe.dropout)
        self.text = with_dropout(text.encoder(self.dimension, training), recipe.dropout)

    def image_parts(self, images: Side) -> Parts:
        """Every item's unit vector [B, N, d], padding zero, and counts [B], see
        `Interaction.image_parts`.
        """
        projected = self.dropout(self.projection(images.values, images.counts))
        return _units(projected, images.counts), images.counts

    def caption_parts(self, captions: Side) -> Parts:
        """Every word's unit vector [B, T, d], padding zero, and lengths [B], see
        `Interaction.caption_parts`.
        """
        words = self.text(captions.values, captions.counts)
        return _units(words, captions.counts), captions.counts

    def compare(self, images: Parts, captions: Parts, paired: bool) -> Tensor:
        items, counts = images
        words, lengths = captions
        items = items.float()
        words = words.float()
        products = all_products(words, items, paired)
        lengths = lengths[:, None] if paired else lengths[None]
        return self._compared(products, items, counts, lengths)

    def products(self, images: Parts, captions: Parts) -> int:
        """Count the products of words with items, see `Interaction.products`."""
        words = captions[0].shape[0] * captions[0].shape[1]
        return words * images[0].shape[1]

    def _compared(self, products: Tensor, items: Tensor, counts: Tensor, lengths: Tensor) -> Tensor:
        """[I, C] of products [I, C, T, N], items [I, N, d], counts [I] and lengths that
        broadcast to [I, C].
        """
        word = valid_slots(lengths, products.shape[2])  # [., C, T]
        if self.form == "max":
            item = valid_slots(counts[:, None], products.shape[3])  # [I, 1, N]
            return sum_of_best(products, item, word) / lengths
        # Each word with the mean of the items, weighted by its attention.
        positive = products.clamp(min=0).masked_fill(~word[..., None], 0.0)
        relative = normalize(positive, dim=2)  # over a caption's words
        cosines = cosine_with_attended(products, self.sharpness * relative, items, counts)
        return cosines.masked_fill(~word, 0.0).sum(2) / lengths


def sum_of_best(products: Tensor, item: Tensor, word: Tensor) -> Tensor:
    """Sum each word's product with its best item (ColBERT's MaxSim): [I, C] of products [I, C, T,
    N].

    item [I, 1, N] and word [., C, T] are false for padding.
    """
    present = products.masked_fill(~item[:, :, None], float("-inf"))
    best = present.amax(3)
    return best.masked_fill(~word, 0.0).sum(2)


def _units(vectors: Tensor, counts: Tensor) -> Tensor:
    valid = valid_mask(vectors, counts)
    present = vectors.masked_fill(~valid[..., None], 0.0)
    return normalize(present, dim=-1)
