"""The engine `naflex` beside the library's own forward pass, and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_dual_encoders
import torch
import transformers as hf
from PIL import Image
from safetensors.torch import load_file, save_file

from pipeline.foundation.parts.errors import InputError
from pipeline.make.features import extractors
from pipeline.make.features.extractors import Runtime

pytestmark = pytest.mark.slow

SIZES = [(70, 40), (32, 64), (33, 33), (300, 20), (8, 8), (1, 1)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_dual_encoders.siglip2_naflex(tmp_path_factory.mktemp("models") / "naflex")


def pictures() -> list[Image.Image]:
    noise = np.random.default_rng(0)
    return [
        Image.fromarray(noise.integers(0, 256, (height, width, 3), np.uint8))
        for width, height in SIZES
    ]


def build(folder: Path, **options: Any) -> Any:
    return extractors.build("naflex", {"weights": str(folder), "patches": 16, **options}, Runtime())


@pytest.mark.specification
@pytest.mark.parametrize("patches", [16, 9])
@torch.inference_mode()
def test_patches_are_those_of_the_librarys_own_forward_pass(folder: Path, patches: int) -> None:
    engine = build(folder, patches=patches)
    network: Any = hf.AutoModel.from_pretrained(folder).eval()
    processor = hf.AutoImageProcessor.from_pretrained(folder, backend="pil")
    together = engine.extract([engine.prepare(picture) for picture in pictures()], SIZES)
    counts = set()
    for picture, size, of_batch in zip(pictures(), SIZES, together, strict=True):
        inputs = processor(images=picture, max_num_patches=patches, return_tensors="pt")
        own = network.vision_model(**inputs).last_hidden_state[0][
            inputs["pixel_attention_mask"][0].bool()
        ]
        (alone,) = engine.extract([engine.prepare(picture)], [size])
        np.testing.assert_allclose(alone.features, own, atol=1e-6)
        np.testing.assert_allclose(of_batch.features, own, atol=1e-5)
        rows, columns = inputs["spatial_shapes"][0].tolist()
        boxes = alone.extras["boxes"]
        assert len(boxes) == len(own) == rows * columns <= patches == engine.items
        assert boxes[0, :2].tolist() == [0, 0]
        assert boxes[-1, 2:].tolist() == list(size)
        counts.add((rows, columns))
    assert len(counts) > 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: shutil.rmtree(folder), "no SigLIP 2 NaFlex that can be read"),
        (
            lambda folder: (folder / "preprocessor_config.json").unlink(),
            "has no preprocessor_config.json",
        ),
        (
            lambda folder: (folder / "model.safetensors").write_bytes(b"no weights"),
            "model.safetensors: not readable as weights",
        ),
        (lambda folder: shorten(folder), "its weights lack "),
        (lambda folder: retype(folder), "is a siglip; expected siglip2"),
    ],
)
def test_what_is_no_such_model_is_refused_in_one_line(
    folder: Path, tmp_path: Path, change: Any, said: str
) -> None:
    copy = shutil.copytree(folder, tmp_path / "model")
    change(copy)
    with pytest.raises(InputError, match=said) as refused:
        build(copy)
    assert "\n" not in str(refused.value)


def shorten(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors.pop("vision_model.post_layernorm.weight")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def retype(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "siglip"}))
