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
WORDS = 10_000  # of the BiGRU's vocabulary
BERT = {"layers": 12, "width": 768, "heads": 12, "feedforward": 3072}
"""BERT-base: the text encoder, and the size of the cross-encoders UNITER-base and OSCAR-base, with which VSE+2AD (Table
2) and VSE∞ (figure 3) compare."""


def pool(setting: Named, dimension: int, batch: int, items: int, device: str) -> Step:
    """Pool [batch, items, dimension], all items valid."""
    module = pooling.build(setting.name, dimension, **setting.options).to(device).eval()
    values = torch.randn(batch, items, dimension, device=device)
    counts = torch.full((batch,), items, device=device)
    return lambda: module(values, counts)


def bigru(training: Training, tokens: int, device: str) -> Step:
    """Encode one caption of `tokens` words with a BiGRU."""
    text = BiGRU(WORDS, training.dimension, training.word_dimension).to(device).eval()
    caption = torch.randint(WORDS, (1, tokens), device=device)
    length = torch.tensor([tokens], device=device)
    return lambda: text(caption, length)


def search(images: int, dimension: int, device: str) -> Step:
    """One caption's similarity with every image [images, dimension], and the `FOUND` most similar."""
    vectors = normalize(torch.randn(images, dimension, device=device), dim=-1)
    caption = normalize(torch.randn(dimension, device=device), dim=-1)
    return lambda: (vectors @ caption).topk(min(FOUND, images))


def transformer_layer(inputs: int, positions: int, device: str) -> Step:
    """One layer of BERT-base on [inputs, positions, width]."""
    layer = nn.TransformerEncoderLayer(BERT["width"], BERT["heads"], BERT["feedforward"], activation="gelu",
                                       batch_first=True).to(device).eval()
    values = torch.randn(inputs, positions, BERT["width"], device=device)
    return lambda: layer(values)
