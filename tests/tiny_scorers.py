"""Published scorers of pairs in folders, narrow and random, made by `transformers`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers
from tiny_bert import PIECES
from transformers import BertTokenizerFast

WORDS = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 40,
}
VISION = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 32,
    "patch_size": 16,
}


def config_of(kind: str) -> Any:
    if kind == "blip":
        return transformers.BlipConfig(
            text_config={**WORDS, "encoder_hidden_size": 16, "projection_dim": 8},
            vision_config=VISION,
            image_text_hidden_size=8,
        )
    if kind == "blip2":
        return transformers.Blip2Config(
            vision_config=VISION,
            image_text_hidden_size=8,
            num_query_tokens=3,
            qformer_config={**WORDS, "encoder_hidden_size": 16, "use_qformer_text_input": True},
            text_config={
                "model_type": "opt",
                "vocab_size": 40,
                "hidden_size": 16,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "ffn_dim": 16,
                "word_embed_proj_dim": 16,
            },
        )
    if kind == "vilt":
        return transformers.ViltConfig(**WORDS, image_size=32, patch_size=16)
    return transformers.BridgeTowerConfig(
        hidden_size=16,
        num_attention_heads=2,
        num_hidden_layers=1,
        text_config={**WORDS, "num_hidden_layers": 2},
        vision_config={
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "patch_size": 16,
            "image_size": 32,
        },
    )


def processor_of(kind: str) -> Any:
    tokenizer = BertTokenizerFast(
        vocab={piece: number for number, piece in enumerate(PIECES)}, model_max_length=30
    )
    size = {"height": 32, "width": 32}
    if kind == "blip":
        return transformers.BlipProcessor(transformers.BlipImageProcessor(size=size), tokenizer)
    if kind == "blip2":
        return transformers.Blip2Processor(transformers.BlipImageProcessor(size=size), tokenizer)
    if kind == "vilt":
        return transformers.ViltProcessor(
            transformers.ViltImageProcessor(size={"shortest_edge": 32}, size_divisor=16), tokenizer
        )
    return transformers.BridgeTowerProcessor(
        transformers.BridgeTowerImageProcessor(
            size={"shortest_edge": 32}, crop_size={"shortest_edge": 32}, size_divisor=16
        ),
        tokenizer,
    )


CLASSES = {
    "blip": "BlipForImageTextRetrieval",
    "blip2": "Blip2ForImageTextRetrieval",
    "vilt": "ViltForImageAndTextRetrieval",
    "bridgetower": "BridgeTowerForImageAndTextRetrieval",
}


def checkpoint(kind: str, folder: Path) -> Path:
    torch.manual_seed(0)
    model = getattr(transformers, CLASSES[kind])(config_of(kind)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.2)
    model.save_pretrained(folder)
    processor_of(kind).save_pretrained(folder)
    return folder
