"""Models in OpenCLIP's format in folders, narrow and random."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import open_clip
import torch
from safetensors.torch import save_file

LIMIT = 12
TEXT = {"context_length": LIMIT, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 2}
OWN = {"embed_dim": 8, "vision_cfg": {"image_size": 32, "patch_size": 8, "width": 16, "head_width": 8, "layers": 2},
       "text_cfg": TEXT}
TIMM = {"embed_dim": 8, "custom_text": True, "text_cfg": TEXT, "vision_cfg": {
    "image_size": 32, "timm_model_name": "test_vit", "timm_pool": "avg", "timm_proj": "linear"}}


def written(folder: Path, model: dict[str, Any]) -> Path:
    """Random weights with their configuration."""
    torch.manual_seed(0)
    folder.mkdir()
    (folder / "open_clip_config.json").write_text(json.dumps({
        "model_cfg": model, "preprocess_cfg": {"mean": [0.5] * 3, "std": [0.5] * 3, "resize_mode": "shortest"}}))
    kind = open_clip.CustomTextCLIP if model.get("custom_text") else open_clip.CLIP
    network = kind(**{key: value for key, value in model.items() if key != "custom_text"})
    save_file({key: value.contiguous() for key, value in network.state_dict().items()},
              folder / "open_clip_model.safetensors")
    return folder
