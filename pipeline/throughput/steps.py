"""What is timed. Values are random: no step's time depends on them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.functional import normalize

from pipeline.heads import pooling
from pipeline.settings import Named, Training
from pipeline.text.bigru import BiGRU

Step = Callable[[], object]
FOUND = 10  # candidates that a query's answer lists
CROSS_ENCODER = {"layers": 12, "width": 768, "heads": 12, "feedforward": 3072}
"""BERT-base, the size of UNITER-base and OSCAR-base, which VSE+2AD Table 2 and VSE∞ figure 3 compare with."""


def pool(setting: Named, dimension: int, batch: int, items: int, device: str) -> Step:
    """Pool [batch, items, dimension], all items valid."""
    module = pooling.build(setting.name, dimension, **setting.options).to(device).eval()
    values = torch.randn(batch, items, dimension, device=device)
    counts = torch.full((batch,), items, device=device)
    return lambda: module(values, counts)


def encode(setting: Named, training: Training, words: int, tokens: int, device: str) -> Step:
    """Embed one caption of `tokens` words: BiGRU, pooling, normalisation."""
    d = training.dimension
    text = BiGRU(words, d, training.word_dimension).to(device).eval()
    module = pooling.build(setting.name, d, **setting.options).to(device).eval()
    caption = torch.randint(words, (1, tokens), device=device)
    length = torch.tensor([tokens], device=device)
    return lambda: normalize(module(text(caption, length), length), dim=-1)


def search(images: int, dimension: int, device: str) -> Step:
    """One caption's similarity with every image [images, dimension], and the `FOUND` most similar."""
    vectors = normalize(torch.randn(images, dimension, device=device), dim=-1)
    caption = normalize(torch.randn(dimension, device=device), dim=-1)
    return lambda: (vectors @ caption).topk(min(FOUND, images))


def cross_encoder_layer(pairs: int, positions: int, device: str) -> Step:
    """One of its layers on pairs of an image and a caption, as [pairs, positions, width]."""
    layer = nn.TransformerEncoderLayer(CROSS_ENCODER["width"], CROSS_ENCODER["heads"], CROSS_ENCODER["feedforward"],
                                       activation="gelu", batch_first=True).to(device).eval()
    values = torch.randn(pairs, positions, CROSS_ENCODER["width"], device=device)
    return lambda: layer(values)
