"""The two-tower head: image items and caption tokens, each projected, pooled and normalised into one space."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import normalize

from pipeline.heads import pooling, projection
from pipeline.heads.batch_norm import ItemNorm
from pipeline.heads.projection import ResidualProjection
from pipeline.settings import Recipe, Training
from pipeline.text import Text


class TwoTower(nn.Module):
    """VSE with a pooling on either side (VSE+2AD section 3.1). d = training.dimension.

    feature: region, grid or patch. width: D of the stored features. text: whose encoder reads the captions.
    """

    def __init__(self, feature: str, width: int, text: Text, recipe: Recipe, training: Training) -> None:
        super().__init__()
        d = training.dimension
        self.projection = projection.build(feature, width, d)
        self.image_pooling = pooling.build(recipe.image_pooling.name, d, **recipe.image_pooling.options)
        self.text = text.encoder(d, training)
        self.text_pooling = pooling.build(recipe.text_pooling.name, d, **recipe.text_pooling.options)

    def embed_images(self, items: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """items [B, N, width] of any float type, counts [B] int64. Returns unit vectors [B, d]."""
        projected = self.projection(self._in_own_dtype(items), counts)
        return normalize(self.image_pooling(projected, counts), dim=-1)

    def embed_captions(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """tokens [B, T] int64, lengths [B] int64. Returns unit vectors [B, d]."""
        return normalize(self.text_pooling(self.text(tokens, lengths), lengths), dim=-1)

    @property
    def pretrained(self) -> dict[str, nn.Module]:
        """The parts that were trained before, by the name of their multiplier: "text"."""
        text = getattr(self.text, "pretrained", None)
        return {"text": text} if isinstance(text, nn.Module) else {}

    @property
    def norm(self) -> ItemNorm | None:
        """The BatchNorm over the items of a batch; None for a projection without."""
        return self.projection.norm if isinstance(self.projection, ResidualProjection) else None

    def before_norm(self, items: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """What `norm` sees of a batch: [M, hidden], M valid items. Arguments as for `embed_images`."""
        assert isinstance(self.projection, ResidualProjection)
        return self.projection.hidden(self._in_own_dtype(items), counts)

    def _in_own_dtype(self, items: torch.Tensor) -> torch.Tensor:
        return items.to(next(self.parameters()).dtype)
