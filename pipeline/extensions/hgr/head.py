"""Hierarchical graph reasoning of clips and captions: HGR (Chen et al., CVPR 2020), and HGR∞ of
VSE∞'s Table 4.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from pipeline.extensions.hgr.options import HGROptions
from pipeline.extensions.hgr.reading import PHRASES, ROLES, VERBS, GraphBatch, RoleGraphReading
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Recipe, Training
from pipeline.make.heads import pooling
from pipeline.make.heads.base import (
    Backbone,
    Interaction,
    Parts,
    all_products,
    cosine_with_attended,
    require_stored_features,
    valid_slots,
)
from pipeline.make.heads.sides import Side
from pipeline.make.text import Text, with_dropout

LEVELS = 3


class HGR(Interaction):
    """Clip and caption on three levels: the event, its actions (verbs) and their entities (other
    phrases).

    A clip's frames go through a linear layer for each level; those of the first are pooled to the
    event. A caption's event is pooled from its words. A phrase is the maximum over its words, times
    a vector of its role. Event and phrases then attend to their neighbours in the caption's role
    graph. The similarity is the mean of three: the cosine of the events, and for verbs and for
    other phrases the mean cosine of a phrase with the frames that it attends to. HGR pools events
    by `attention`, HGR∞ by `gpo`: the recipe's poolings. d is `training.dimension`.
    """

    caption_reading = RoleGraphReading()

    def __init__(
        self,
        feature: str,
        width: int,
        text: Text,
        recipe: Recipe,
        training: Training,
        backbone: Backbone | None,
        options: HGROptions,
    ) -> None:
        super().__init__()
        require_stored_features(backbone, "the architecture hgr")
        if recipe.drop_tokens:
            raise InputError(
                "the architecture hgr reads role graphs, which count words; set drop_tokens to 0"
            )
        self.dimension = training.dimension
        self.sharpness = options.sharpness
        self.levels = nn.ModuleList(nn.Linear(width, self.dimension) for _ in range(LEVELS))
        self.dropout = nn.Dropout(recipe.dropout)
        self.image_pooling = pooling.of(recipe.image_pooling, self.dimension)
        self.text_pooling = pooling.of(recipe.text_pooling, self.dimension)
        encoder = text.encoder(self.dimension, training)
        self.text = with_dropout(encoder, recipe.dropout)
        self.roles = nn.Embedding(len(ROLES), self.dimension)
        self.graph = GraphAttention(self.dimension, options.graph_dropout)

    def image_parts(self, images: Side) -> Parts:
        """The event's unit vectors [B, d], frames for verbs and other phrases [B, N, d] each, and
        counts [B].
        """
        items = images.values.to(self.roles.weight.dtype)
        counts = images.counts
        events, verbs, objects = (self.dropout(level(items)) for level in self.levels)
        padding = ~valid_slots(counts, items.shape[1])[..., None]
        event = normalize(self.image_pooling(events, counts), dim=-1)
        verbs = verbs.masked_fill(padding, 0.0)
        objects = objects.masked_fill(padding, 0.0)
        return event, verbs, objects, counts

    def caption_parts(self, captions: Side) -> Parts:
        """The unit vectors [B, 1 + P, d] of the event and the phrases, and which slots hold a
        phrase, bool [B, P].
        """
        graphs = GraphBatch(*captions.further)
        words = self.text(captions.values, captions.counts)
        event = self.text_pooling(words, captions.counts)
        present = graphs.spans.any(2)
        spanned = words[:, None].masked_fill(~graphs.spans[..., None], float("-inf"))
        greatest = spanned.amax(2).masked_fill(~present[..., None], 0.0)
        phrases = greatest * self.roles(graphs.roles)
        whole_and_phrases = torch.cat([event[:, None], phrases], 1)
        nodes = self.graph(whole_and_phrases, graphs.edges)
        return normalize(nodes, dim=-1), present

    def compare(self, images: Parts, captions: Parts, paired: bool) -> Tensor:
        event, *levels, counts = images
        nodes, present = captions
        event = event.float()
        nodes = nodes.float()
        if paired:
            whole = (event * nodes[:, 0]).sum(1, keepdim=True)
            present = present[:, None]
        else:
            whole = event @ nodes[:, 0].T
            present = present[None]
        phrases = nodes[:, 1:]
        slots_of_levels = (slice(0, VERBS), slice(VERBS, PHRASES))
        for level, slots in zip(levels, slots_of_levels, strict=True):
            frames = level.float()
            products = all_products(phrases[:, slots], frames, paired)
            similarity = self._mean_over_phrases(products, frames, counts, present[..., slots])
            whole = whole + similarity
        return whole / LEVELS

    def products(self, images: Parts, captions: Parts) -> int:
        """Count the products of phrases with frames, see `Interaction.products`."""
        return captions[1].numel() * images[1].shape[1]

    def _mean_over_phrases(
        self, products: Tensor, frames: Tensor, counts: Tensor, present: Tensor
    ) -> Tensor:
        """[I, C] of products [I, C, P, N] of unit phrases with frames [I, N, d]; present broadcasts
        to [I, C, P].
        """
        lengths = frames.norm(dim=2).clamp(min=1e-9)
        cosines = products / lengths[:, None, None]
        relative = normalize(cosines.clamp(min=0), dim=3)  # over a clip's frames
        similarity = cosine_with_attended(products, self.sharpness * relative, frames, counts)
        phrases = present.sum(2).clamp(min=1)
        return (similarity * present).sum(2) / phrases


class GraphAttention(nn.Module):
    """One layer of attention over a graph: a node is added to the attended mean of its neighbours,
    and normalised.
    """

    def __init__(self, dim: int, dropout: float) -> None:
        super().__init__()
        hidden = max(1, dim // 2)
        self.query = nn.Linear(dim, hidden)
        self.key = nn.Linear(dim, hidden)
        self.context = nn.Linear(dim, dim, bias=False)
        self.norm = nn.LayerNorm(dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        """Compute the nodes [B, M, d] after the layer; edges [B, M, M]: whether the row attends to
        the column.
        """
        products = self.query(nodes) @ self.key(nodes).transpose(1, 2)
        scores = products / self.query.out_features**0.5
        weights = scores.float().masked_fill(~edges, -1e18).softmax(2)
        weights = weights * edges  # 0 for a node without neighbours
        attended = self.context(weights.to(nodes.dtype) @ nodes)
        return self.norm(nodes + self.dropout(attended))
