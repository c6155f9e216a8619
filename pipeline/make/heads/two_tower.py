"""The two-tower head: image items and caption tokens, each projected, pooled and normalised in one
joint space.
"""

import torch
from torch import nn
from torch.nn.functional import normalize

from pipeline.foundation.settings import Recipe, Training
from pipeline.make.heads import pooling, projection
from pipeline.make.heads.base import Backbone, HeadNetwork
from pipeline.make.heads.projection import ItemNorm, ResidualProjection
from pipeline.make.heads.sides import Side
from pipeline.make.text import Text, with_dropout

# Captions with more tokens than this are embedded separately: three times the longest of
# Flickr8k's.
LONG = 128


class TwoTower(HeadNetwork):
    """A visual-semantic embedding with a pooling on either side (VSE+2AD section 3.1); d is
    `training.dimension`.

    backbone: the network that makes the features, if it is trained with the head.
    """

    def __init__(
        self,
        feature: str,
        width: int,
        text: Text,
        recipe: Recipe,
        training: Training,
        backbone: Backbone | None = None,
    ) -> None:
        super().__init__()
        d = training.dimension
        self.dimension = d
        self.backbone = backbone
        self.projection = projection.build(feature, width, d)
        self.dropout = nn.Dropout(recipe.dropout)
        self.image_pooling = pooling.of(recipe.image_pooling, d)
        self.text = with_dropout(text.encoder(d, training), recipe.dropout)
        self.text_pooling = pooling.of(recipe.text_pooling, d)

    def embed_images(self, images: Side) -> torch.Tensor:
        """Embed images, see `HeadNetwork.embed_images`."""
        items = images.values
        if self.backbone is not None:
            items = self.backbone(items)
            if images.kept is not None:
                pooled = images.kept[..., None].expand(-1, -1, items.shape[2])
                items = items.gather(1, pooled)
        projected = self.dropout(self.projection(items, images.counts))
        return normalize(self.image_pooling(projected, images.counts), dim=-1)

    def embed_captions(self, captions: Side) -> torch.Tensor:
        """Embed captions, see `HeadNetwork.embed_captions`; long ones apart, for less padding of
        the others.
        """
        values = captions.values
        counts = captions.counts
        if torch.compiler.is_exporting() or values.shape[1] <= LONG:
            return self._embed_captions(values, counts)
        long = counts > LONG
        parts = []
        vectors = []
        for chosen in (~long, long):
            part = chosen.nonzero()[:, 0]
            if len(part):
                lengths = counts[part]
                cut = values[part, : int(lengths.max())]
                parts.append(part)
                vectors.append(self._embed_captions(cut, lengths))
        in_order = torch.cat(parts).argsort()
        return torch.cat(vectors)[in_order]

    def _embed_captions(self, values: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        words = self.text(values, counts)
        return normalize(self.text_pooling(words, counts), dim=-1)

    @property
    def can_run_in_parallel(self) -> bool:
        """Whether there is no dropout, and no pretrained part: BERT takes far longer than the
        projection of items.
        """
        draws = any(isinstance(part, nn.Dropout) and part.p for part in self.modules())
        return not draws and not self.pretrained

    @property
    def norm(self) -> ItemNorm | None:
        """The BatchNorm over the items of a batch; None for a projection without one."""
        if isinstance(self.projection, ResidualProjection):
            return self.projection.norm
        return None

    def before_norm(self, images: Side) -> torch.Tensor:
        """Compute the input of `norm`: [M, hidden], for M valid items."""
        assert isinstance(self.projection, ResidualProjection)
        return self.projection.hidden(images.values, images.counts)
