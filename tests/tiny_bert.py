"""A BERT checkpoint in a folder, narrow and random, with word pieces for the rendered scenes'
captions.
"""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AutoModel, BertConfig, BertTokenizerFast

PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "a",
    "the",
    "red",
    "blue",
    "green",
    "yellow",
    "circle",
    "square",
    "triangle",
    "above",
    "below",
    "left",
    "right",
    "of",
    "and",
    "with",
    "on",
    "in",
    "small",
    "large",
    "##s",
]


def tiny_bert(folder: Path, layers: int = 3, width: int = 16) -> Path:
    """Write it, with the same weights each time."""
    BertTokenizerFast(vocab={piece: number for number, piece in enumerate(PIECES)}).save_pretrained(
        folder
    )
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(PIECES),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=2 * width,
        max_position_embeddings=64,
        initializer_range=0.2,
    )
    AutoModel.from_config(config).save_pretrained(folder)
    return folder
