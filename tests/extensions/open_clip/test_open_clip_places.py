"""Where models of OpenCLIP are, and what is said of what is none, before torch is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pipeline.foundation.files import model_folder

pytestmark = pytest.mark.slow

# Kind and place below the folder -> a part of the answer.
CASES = {
    "open_clip:empty": "has no open_clip_config.json; expected a model of OpenCLIP, or use clip: or "
    "siglip:; the folder is empty",
    "open_clip:clip": "clip: has no open_clip_config.json",
    "open_clip:run": "name one of its checkpoints, open_clip:run/checkpoints/epoch_1.pt",
    "open_clip:epoch_3.pt": "epoch_3.pt: no params.txt of its training",
    "open_clip:epoch_4.pt": "did you mean epoch_3.pt?",
    "open_clip:logs/*/epoch_3.pt": "behind a colon the shell replaces no *",
    "open_clip:ours/open_clip_model.safetensors": "is a file; name its folder, open_clip:",
    "open_clip:clip/model.safetensors": "is a file of a model of transformers; name its folder, such as clip:",
    "open_clip:ViT-L-14.pt": "OpenAI's TorchScript archive, whose code is not run",
    "open_clip:RN50.pt": "the same weights are timm/resnet50_clip.openai on the hub",
    "clip:epoch_3.pt": "name the folder; a checkpoint of OpenCLIP's training is open_clip:FILE",
    "clip:ours": "expected a model of the library transformers, or write open_clip:ours",
    "clip:outer": "did you mean outer/ours?",
}
RUN = """
import json, sys
from pipeline.foundation.parts.errors import InputError
from pipeline.make import dual_encoders
for model in json.loads(sys.argv[1]):
    try:
        dual_encoders.check(model)
        print("taken")
    except InputError as error:
        print(error)
assert "torch" not in sys.modules
"""


def test_what_is_no_model_is_named_before_torch_is_imported(tmp_path: Path) -> None:
    for folder in ("empty", "clip", "ours", "outer/ours", "run/checkpoints"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "clip" / "config.json").write_text('{"model_type": "clip"}')
    for file in (
        "clip/model.safetensors",
        "ours/open_clip_model.safetensors",
        "run/checkpoints/epoch_1.pt",
        "epoch_3.pt",
    ):
        (tmp_path / file).write_bytes(b"weights")
    for folder in ("ours", "outer/ours"):
        (tmp_path / folder / "open_clip_config.json").write_text("{}")
    for name in ("ViT-L-14.pt", "RN50.pt"):
        torch.jit.script(torch.nn.Linear(2, 2)).save(tmp_path / name)
    ran = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(list(CASES))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    for (model, expected), said in zip(CASES.items(), ran.stdout.splitlines(), strict=True):
        assert expected in said, model


def test_a_folder_of_its_model_is_known_as_one(tmp_path: Path) -> None:
    assert not model_folder.is_model(tmp_path)
    (tmp_path / "open_clip_config.json").write_text("{}")
    assert model_folder.is_model(tmp_path)
