"""Dual encoders in folders, narrow and random, made by `transformers`: each class of
`pipeline.make.dual_encoders`.
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

WORDS = [
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
    "photo",
]
TOWER = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
SIDE, LIMIT = 32, 12


def clip(folder: Path) -> Path:
    letters = [chr(number) for number in range(ord("a"), ord("z") + 1)]
    pieces = [
        "<|startoftext|>",
        "<|endoftext|>",
        *letters,
        *(f"{letter}</w>" for letter in letters),
    ]
    tokenizer = hf.CLIPTokenizer(
        vocab={piece: number for number, piece in enumerate(pieces)}, merges=[]
    )
    text = {
        **TOWER,
        "vocab_size": len(pieces),
        "max_position_embeddings": LIMIT,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 1,
    }
    vision = {**TOWER, "image_size": SIDE, "patch_size": 8}
    config = hf.CLIPConfig(text_config=text, vision_config=vision, projection_dim=8)
    processor = hf.CLIPImageProcessor(
        size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}
    )
    return _written(folder, config, tokenizer, processor)


def siglip(folder: Path) -> Path:
    learnt = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(WORDS), *WORDS] * 20),
        model_writer=learnt,
        vocab_size=60,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spiece.model").write_bytes(learnt.getvalue())
    tokenizer = hf.SiglipTokenizer(str(folder / "spiece.model"), model_max_length=LIMIT)
    return _written(
        folder,
        _siglip(hf.SiglipConfig, len(tokenizer)),
        tokenizer,
        hf.SiglipImageProcessor(size={"height": SIDE, "width": SIDE}),
    )


def siglip2_fixed(folder: Path) -> Path:
    tokenizer = _gemma()
    return _written(
        folder,
        _siglip(hf.SiglipConfig, len(tokenizer)),
        tokenizer,
        hf.SiglipImageProcessor(size={"height": SIDE, "width": SIDE}),
    )


def siglip2_naflex(folder: Path) -> Path:
    tokenizer = _gemma()
    config = _siglip(hf.Siglip2Config, len(tokenizer), {"num_patches": 16, "patch_size": 8})
    return _written(
        folder, config, tokenizer, hf.Siglip2ImageProcessor(patch_size=8, max_num_patches=16)
    )


def sentence_transformers(
    folder: Path, modules: Sequence[Any] = (), truncate_dim: int | None = None, **said: Any
) -> Path:
    """A CLIP as sentence-transformers saves it, with more modules and settings of its own."""
    from sentence_transformers import SentenceTransformer

    clip(folder / "clip")
    model = SentenceTransformer(
        str(folder / "clip"), device="cpu", local_files_only=True, truncate_dim=truncate_dim, **said
    )
    for module in modules:
        model.append(module)
    model.save(str(folder), create_model_card=False)
    shutil.rmtree(folder / "clip")
    return folder


def colpali(folder: Path) -> Path:
    """A ColPali, which has a vector for every token."""
    pieces = [
        "<pad>",
        "<eos>",
        "<bos>",
        "<unk>",
        "<mask>",
        "<image>",
        "▁",
        *"abcdefghijklmnopqrstuvwxyz:.?\n",
    ]
    tokenizer = hf.GemmaTokenizer(
        vocab={piece: number for number, piece in enumerate(pieces)},
        merges=[],
        extra_special_tokens={"image_token": "<image>"},
    )
    images = hf.SiglipImageProcessor(size={"height": SIDE, "width": SIDE})
    images.image_seq_length = 16
    text = hf.GemmaConfig(
        **TOWER,
        vocab_size=len(tokenizer),
        num_key_value_heads=1,
        head_dim=8,
        max_position_embeddings=64,
    )
    vision = hf.SiglipVisionConfig(**TOWER, image_size=SIDE, patch_size=8, projection_dim=16)
    network = hf.PaliGemmaConfig(
        vision_config=vision,
        text_config=text,
        projection_dim=16,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
    )
    torch.manual_seed(0)
    hf.ColPaliForRetrieval(hf.ColPaliConfig(vlm_config=network, embedding_dim=8)).save_pretrained(
        folder / "own"
    )
    hf.ColPaliProcessor(image_processor=images, tokenizer=tokenizer).save_pretrained(folder / "own")
    from sentence_transformers import MultiVectorEncoder

    model = MultiVectorEncoder(str(folder / "own"), device="cpu", local_files_only=True)
    model.save(str(folder), create_model_card=False)
    shutil.rmtree(folder / "own")
    return folder


def vision_text(folder: Path) -> Path:
    """A ViT and a BERT with a projection each."""
    vocabulary = folder / "words.txt"
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    text = hf.BertConfig(**TOWER, vocab_size=5 + len(WORDS), max_position_embeddings=LIMIT)
    vision = hf.ViTConfig(**TOWER, image_size=SIDE, patch_size=8)
    config = hf.VisionTextDualEncoderConfig.from_vision_text_configs(vision, text, projection_dim=8)
    processor = hf.CLIPImageProcessor(
        size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}
    )
    return _written(
        folder, config, hf.BertTokenizer(str(vocabulary), model_max_length=LIMIT), processor
    )


FOLDERS: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "clip": ("clip", clip),
    "siglip": ("siglip", siglip),
    "siglip2": ("siglip2", siglip2_fixed),
    "siglip2-naflex": ("siglip2", siglip2_naflex),
}
"""Name -> the kind of dual encoder, and what writes such a folder."""


def _gemma() -> hf.Siglip2Tokenizer:
    pieces = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "▁", *"abcdefghijklmnopqrstuvwxyz"]
    return hf.Siglip2Tokenizer(
        vocab={piece: number for number, piece in enumerate(pieces)},
        merges=[],
        padding_side="right",
        model_max_length=LIMIT,
    )


def _siglip(kind: type, pieces: int, vision: dict[str, int] | None = None) -> hf.PretrainedConfig:
    text = {**TOWER, "vocab_size": pieces, "max_position_embeddings": LIMIT, "projection_size": 16}
    return kind(
        text_config=text,
        vision_config={**TOWER, **(vision or {"image_size": SIDE, "patch_size": 8})},
    )


def _written(
    folder: Path,
    config: hf.PretrainedConfig,
    tokenizer: hf.PreTrainedTokenizerBase,
    processor: hf.BaseImageProcessor,
) -> Path:
    """With the same weights each time, wide apart so that vectors differ."""
    torch.manual_seed(0)
    network = hf.AutoModel.from_config(config)
    with torch.no_grad():
        for values in network.parameters():
            if values.ndim > 1:
                values.normal_(std=0.3)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def shorten(folder: Path) -> None:
    """Leave the projection of captions out of a CLIP's weights."""
    tensors = load_file(folder / "model.safetensors")
    tensors.pop("text_projection.weight")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def widen(folder: Path) -> None:
    """Make a CLIP's configuration that of a wider model than its weights are of."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"projection_dim": 12}))
