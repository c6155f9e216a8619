"""A cross-encoder like OSCAR (Li et al. 2020): word pieces and image items in one BERT encoder.

The parts and their names are those of `transformers`' BertModel and of OSCAR's released code, which
adds a linear layer from items to the encoder's width. Items have no position and no type. Source:
Geigle et al., TACL 2022, section 3.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize, scaled_dot_product_attention

from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Recipe, Training
from pipeline.make.heads import pooling
from pipeline.make.heads.base import Backbone, HeadNetwork, require_stored_features, valid_slots
from pipeline.make.heads.options import CrossEncoderOptions
from pipeline.make.heads.sides import Side
from pipeline.make.text import Text
from pipeline.make.text.tokens import TokenText


def encode(layers: Iterable[nn.Module], sequence: Tensor, mask: Tensor | None) -> Tensor:
    """Run BERT's layers on a sequence [B, S, hidden]; positions that the mask hides are not
    attended to.
    """
    for layer in layers:
        sequence = layer(sequence, mask)
    return sequence


def first_encoded(layers: nn.ModuleList, sequence: Tensor, mask: Tensor | None) -> Tensor:
    """Run the layers for the first position's output, [B, hidden]: the last has one query, a sixth
    of its work.
    """
    layer: Any = layers[-1]
    sequence = encode(layers[:-1], sequence, mask)
    attention = layer.attention.self
    first = sequence[:, :1]
    heads = (attention.num_attention_heads, attention.attention_head_size)

    def by_head(states: Tensor) -> Tensor:
        return states.unflatten(2, heads).transpose(1, 2)

    query = by_head(attention.query(first))
    key = by_head(attention.key(sequence))
    value = by_head(attention.value(sequence))
    dropout = attention.dropout.p if layer.training else 0.0
    seen = scaled_dot_product_attention(query, key, value, mask, dropout)
    joined = seen.transpose(1, 2).flatten(2)
    attended = layer.attention.output(joined, first)
    inner = layer.intermediate(attended)
    return layer.output(inner, attended)[:, 0]


def mask_of(valid: Tensor) -> Tensor | None:
    """Make the mask for `scaled_dot_product_attention`; None, which is faster, if nothing is
    padding.
    """
    if bool(valid.all()):
        return None
    return valid[:, None, None, :]


# The dropout before the classifier.
DROPOUT = 0.1
# The temperature of a pair's cosine.
TEMPERATURE = 0.05
# Networks with `embeddings`, an `encoder` and a `pooler` of BERT's kind.
KINDS = ("bert", "xlm-roberta")


class CrossEncoder(HeadNetwork):
    """One BERT that scores pairs of a caption and an image (CE), and embeds each of them alone
    (EMB).

    CE reads `[CLS] caption [SEP]` and the items as one sequence; a tanh layer and a linear layer
    over [CLS] give the logits of a negative and a positive pair. EMB reads a caption alone, or
    [CLS] and the items, and pools all positions; the papers take the mean. d is the width of the
    encoder. width: D of the items, with six more values for their boxes, see
    `pipeline.make.features.store.boxes`.
    """

    def __init__(
        self,
        feature: str,
        width: int,
        text: Text,
        recipe: Recipe,
        training: Training,
        backbone: Backbone | None,
        options: CrossEncoderOptions,
    ) -> None:
        super().__init__()
        config = getattr(text, "config", None)
        if not isinstance(text, TokenText) or config is None or config.model_type not in KINDS:
            raise InputError(
                "a cross-encoder reads word pieces by a BERT; train it with --text bert, and set "
                f"training.NAME.bert to a checkpoint of one of {', '.join(KINDS)}"
            )
        require_stored_features(backbone, "a cross-encoder")
        if recipe.dropout:
            raise InputError(
                "a cross-encoder has the dropout of its BERT; leave dropout out of the recipe"
            )
        self.bert: Any = text.network(pooler=True)  # type: ignore[attr-defined]
        of_checkpoint = self.bert.encoder.layer
        layers = options.layers or []
        possible = range(len(of_checkpoint))
        if layers != [layer for layer in possible if layer in layers]:
            raise InputError(
                f"architecture.layers: expected ascending numbers of the checkpoint's layers, 0 to "
                f"{len(of_checkpoint) - 1}, got {layers}"
            )
        if layers:
            self.bert.encoder.layer = nn.ModuleList(of_checkpoint[layer] for layer in layers)
        hidden = config.hidden_size
        self.dimension = hidden
        self.pair_score = options.pair_score
        self.regions = options.regions
        self.pieces = options.pieces
        self.bert.img_embedding = nn.Linear(width, hidden)
        self.bert.LayerNorm = None
        if options.image_norm:
            self.bert.LayerNorm = nn.LayerNorm(hidden, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.class_dropout = nn.Dropout(DROPOUT)
        self.classifier = nn.Linear(hidden, 2)
        self.image_pooling = pooling.of(recipe.image_pooling, hidden)
        self.text_pooling = pooling.of(recipe.text_pooling, hidden)
        for layer in (self.bert.img_embedding, self.classifier):
            nn.init.normal_(layer.weight, std=config.initializer_range)
            nn.init.zeros_(layer.bias)
        (self.start,) = text.before
        (self.end,) = text.after

    @property
    def pretrained(self) -> dict[str, nn.Module]:
        """BERT's own parts, as "text"."""
        parts = [self.bert.embeddings, self.bert.encoder, self.bert.pooler]
        return {"text": nn.ModuleList(parts)}

    def words(self, tokens: Tensor) -> Tensor:
        """Compute the first layer's input of captions, int64 [B, T]: [B, up to T, hidden]."""
        if self.pieces and tokens.shape[1] > self.pieces:
            tokens = tokens[:, : self.pieces].clone()
            tokens[:, -1] = self.end  # in a shorter caption this position is padding
        return self.bert.embeddings(input_ids=tokens)

    def items(self, items: Tensor) -> Tensor:
        """Compute the first layer's input of images, float [B, N, width]: [B, up to N, hidden]."""
        items = items[:, : self.regions].to(self.classifier.weight.dtype)
        projected = self.bert.img_embedding(items)
        if self.bert.LayerNorm is not None:
            projected = self.bert.LayerNorm(projected)
        return self.dropout(projected)

    def embed_images(self, images: Side) -> Tensor:
        start = torch.full((len(images), 1), self.start, device=images.values.device)
        first = self.words(start)
        items = self.items(images.values).to(first.dtype)
        sequence = torch.cat([first, items], 1)
        return self._pooled(sequence, images.counts + 1, self.image_pooling)

    def embed_captions(self, captions: Side) -> Tensor:
        return self._pooled(self.words(captions.values), captions.counts, self.text_pooling)

    def _pooled(self, sequence: Tensor, lengths: Tensor, pool: nn.Module) -> Tensor:
        lengths = lengths.clamp(max=sequence.shape[1])  # captions may have been cut
        mask = mask_of(valid_slots(lengths, sequence.shape[1]))
        encoded = encode(self.bert.encoder.layer, sequence, mask).float()
        return normalize(pool(encoded, lengths), dim=-1)

    def logits(self, words: Tensor, lengths: Tensor, items: Tensor, counts: Tensor) -> Tensor:
        """Score P pairs of outputs of `words` and `items`: logits of a negative and of a positive,
        float32 [P, 2].
        """
        longest = words.shape[1]
        most_items = items.shape[1]
        # Both may have been cut.
        lengths = lengths.clamp(max=longest)
        counts = counts.clamp(max=most_items)
        valid_words = valid_slots(lengths, longest)
        valid_items = valid_slots(counts, most_items)
        sequence = torch.cat([words, items.to(words.dtype)], 1)
        mask = mask_of(torch.cat([valid_words, valid_items], 1))
        cosine = self.pair_score == "cosine"
        run = encode if cosine else first_encoded
        encoded = run(self.bert.encoder.layer, sequence, mask).float()
        with torch.autocast(encoded.device.type, enabled=False):  # bfloat16 would make ties
            if not cosine:
                pooled = torch.tanh(self.bert.pooler.dense(encoded))
                return self.classifier(self.class_dropout(pooled))
            caption = self.text_pooling(encoded[:, :longest], lengths)
            image = self.image_pooling(encoded[:, longest:], counts)
            cosines = (normalize(caption, dim=-1) * normalize(image, dim=-1)).sum(-1)
            half = cosines / (2 * TEMPERATURE)
            return torch.stack([-half, half], 1)

    def forward(self, captions: Side, images: Side, caption: Tensor, image: Tensor) -> Tensor:
        """Score pairs, float32 [P, 2], of captions and images, each of which enters the first layer
        once.
        """
        words = self.words(captions.values)[caption]
        items = self.items(images.values)[image]
        return self.logits(words, captions.counts[caption], items, images.counts[image])


PairObjective: TypeAlias = Callable[[Tensor], Tensor]


def pair_cross_entropy(logits: Tensor) -> Tensor:
    """Cross-entropy of two classes, positive and negative (Geigle et al., TACL 2022, equation 1).

    Logits are float32 [B, 1 + c, 2], of a negative and of a positive pair; the first pair of each
    row is positive.
    """
    positive = torch.zeros(logits.shape[:2], dtype=torch.int64, device=logits.device)
    positive[:, 0] = 1
    return cross_entropy(logits.flatten(0, 1), positive.flatten())


def listwise(logits: Tensor) -> Tensor:
    """Cross-entropy of the positive pair among its row (ListNet with one positive, Cao et al.
    2007).
    """
    scores = margins(logits)
    first = scores.new_zeros(len(scores), dtype=torch.int64)
    return cross_entropy(scores, first)


def margins(logits: Tensor) -> Tensor:
    """Compute pairs' scores [...] from logits [..., 2]: the difference, which orders pairs as the
    probability does.
    """
    return logits[..., 1] - logits[..., 0]


PAIR_OBJECTIVES: dict[str, PairObjective] = {
    "cross_entropy": pair_cross_entropy,
    "listwise": listwise,
}
