"""Models in OpenCLIP's format in folders, and checkpoints as its training leaves them, narrow and
random.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import open_clip
import torch
import torch.distributed.checkpoint
from safetensors.torch import save_file

LIMIT = 12
TEXT = {"context_length": LIMIT, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 2}
OWN = {
    "embed_dim": 8,
    "vision_cfg": {"image_size": 32, "patch_size": 8, "width": 16, "head_width": 8, "layers": 2},
    "text_cfg": TEXT,
}
TIMM = {
    "embed_dim": 8,
    "custom_text": True,
    "text_cfg": TEXT,
    "vision_cfg": {
        "image_size": 32,
        "timm_model_name": "test_vit",
        "timm_pool": "avg",
        "timm_proj": "linear",
    },
}


def written(folder: Path, model: dict[str, Any]) -> Path:
    """Random weights with their configuration."""
    torch.manual_seed(0)
    folder.mkdir()
    (folder / "open_clip_config.json").write_text(
        json.dumps(
            {
                "model_cfg": model,
                "preprocess_cfg": {"mean": [0.5] * 3, "std": [0.5] * 3, "resize_mode": "shortest"},
            }
        )
    )
    kind = open_clip.CustomTextCLIP if model.get("custom_text") else open_clip.CLIP
    network = kind(**{key: value for key, value in model.items() if key != "custom_text"})
    save_file(
        {key: value.contiguous() for key, value in network.state_dict().items()},
        folder / "open_clip_model.safetensors",
    )
    return folder


class Run(NamedTuple):
    """What a training left."""

    checkpoint: Path  # the file, or the folder of a distributed checkpoint
    network: Any  # the network that was trained
    transform: Any  # its preprocessing
    tokenize: Any  # its tokenizer


def trained(
    folder: Path,
    model: dict[str, Any],
    prefix: str = "",
    ema: bool = False,
    distributed: bool = False,
    siglip: bool = False,
    said: dict[str, Any] | None = None,
    **flags: Any,
) -> Run:
    """Write what `open_clip_train.main` writes with some flags; `said` are lines of params.txt that
    differ.
    """
    torch.manual_seed(0)
    checkpoints = folder / "checkpoints"
    checkpoints.mkdir(parents=True)
    (folder / "tiny.json").write_text(json.dumps(model))
    open_clip.add_model_config(folder / "tiny.json")
    bias = {"init_logit_scale": 2.3, "init_logit_bias": -10} if siglip else {}
    network, _, transform = open_clip.create_model_and_transforms(
        "tiny", output_dict=True, **bias, **flags
    )
    lines = {
        "aug_cfg": {},
        "csv_separator": "\t",
        "image_mean": None,
        "model": "tiny",
        "pretrained": "",
        "siglip": siglip,
        "wandb_notes": "of a day\nmodel: another",
        **flags,
        **(said or {}),
    }
    (folder / "params.txt").write_text(
        "".join(f"{name}: {lines[name]}\n" for name in sorted(lines))
    )
    state = {prefix + name: value for name, value in network.state_dict().items()}
    optimizer = torch.optim.AdamW(network.parameters())
    optimizer_state = optimizer.state_dict()
    if distributed:
        place = checkpoints / "epoch_1"
        torch.distributed.checkpoint.save(
            {"model": state, "optimizer": optimizer_state}, checkpoint_id=place, no_dist=True
        )
        torch.save({"epoch": 1, "name": folder.name}, place / "_metadata_extra.pt")
    else:
        place = checkpoints / "epoch_1.pt"
        held = {"epoch": 1, "name": folder.name, "state_dict": state, "optimizer": optimizer_state}
        last = {name: value * 2 for name, value in state.items()}
        torch.save(
            {**held, **({"state_dict": last, "state_dict_ema": state} if ema else {})}, place
        )
    tokenize = open_clip.get_tokenizer("tiny", context_length=flags.get("force_context_length"))
    return Run(place, network.eval(), transform, tokenize)
