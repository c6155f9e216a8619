"""A BERT's layers over a padded batch."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention


def encode(layers: nn.ModuleList, sequence: Tensor, valid: Tensor) -> Tensor:
    """Run BERT's layers on a sequence [B, S, hidden]; padding is not attended to, its result is unspecified."""
    mask = _mask(valid)
    for layer in layers:
        sequence = layer(sequence, mask)
    return sequence


def first_encoded(layers: nn.ModuleList, sequence: Tensor, valid: Tensor) -> Tensor:
    """Run the layers for the first position alone, [B, hidden].

    The last layer then has one query, a sixth of its work.
    """
    *others, last = layers
    mask = _mask(valid)
    for layer in others:
        sequence = layer(sequence, mask)
    return _first(last, sequence, mask)[:, 0]


def _mask(valid: Tensor) -> Tensor | None:
    """As `scaled_dot_product_attention` takes it; None, which is faster, where nothing is padding."""
    return None if bool(valid.all()) else valid[:, None, None, :]


def _first(layer: Any, sequence: Tensor, mask: Tensor | None) -> Tensor:
    """[B, 1, hidden], what a layer gives for the first position."""
    attention, first = layer.attention.self, sequence[:, :1]
    heads = (attention.num_attention_heads, attention.attention_head_size)
    query, key, value = (project(states).unflatten(2, heads).transpose(1, 2) for project, states in (
        (attention.query, first), (attention.key, sequence), (attention.value, sequence)))
    seen = scaled_dot_product_attention(query, key, value, mask, attention.dropout.p if layer.training else 0.0)
    own = layer.attention.output(seen.transpose(1, 2).flatten(2), first)
    return layer.output(layer.intermediate(own), own)
