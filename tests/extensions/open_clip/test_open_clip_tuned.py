"""Models of OpenCLIP trained on, and written for OpenCLIP."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import open_clip
import pytest
import tiny_open_clip
import torch
import tuned_encoders
from tuned_encoders import CAPTIONS, PICTURES, job_of, tuning

from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.make.dual_encoders.tuning.job import TuningJob

pytestmark = pytest.mark.slow


@pytest.fixture
def job(scenes: Manifest, tmp_path: Path) -> TuningJob:
    folder = tiny_open_clip.written(tmp_path / "open", tiny_open_clip.OWN)
    return job_of(f"open_clip:{folder}", scenes, tmp_path, "lora")


def test_every_adapter_learns_by_the_second_step(job: TuningJob) -> None:
    # in_proj with out_proj, c_fc and c_proj of each block
    tuned_encoders.check_adapters_learn(job, 4)


def test_merged_adapters_give_the_same_vectors(job: TuningJob) -> None:
    tuned_encoders.check_merged_adapters(job)


@pytest.mark.parametrize(
    "flags",
    [
        None,
        {},
        {
            "force_quick_gelu": True,
            "force_image_size": 48,
            "image_mean": [0.5] * 3,
            "force_context_length": 9,
            "force_custom_text": True,
        },
    ],
)
def test_open_clip_opens_what_is_exported(
    flags: dict[str, Any] | None, job: TuningJob, tmp_path: Path
) -> None:
    if flags is not None:
        run = tiny_open_clip.trained(tmp_path / "run", tiny_open_clip.OWN, **flags)
        job = replace(job, model=f"open_clip:{run.checkpoint}")
    folder = tmp_path / "exported"
    encoder = tuned_encoders.exported(job, folder)
    network, transform = open_clip.create_model_from_pretrained(f"local-dir:{folder}")
    tokens = open_clip.get_tokenizer(f"local-dir:{folder}")(CAPTIONS)
    images = torch.stack([transform(picture) for picture in PICTURES])
    tuned_encoders.compared(encoder, network.encode_image(images), network.encode_text(tokens))


def test_a_batch_norm_is_refused_or_fixed(job: TuningJob, tmp_path: Path) -> None:
    config = {
        **tiny_open_clip.TIMM,
        "vision_cfg": {
            "image_size": 32,
            "timm_model_name": "test_efficientnet",
            "timm_pool": "",
            "timm_proj": "linear",
        },
    }
    model = f"open_clip:{tiny_open_clip.written(tmp_path / 'norms', config)}"
    job = replace(job, model=model, recipe=tuning("all"))
    with pytest.raises(
        InputError, match="is a BatchNorm, whose output depends on the rest of the batch; set"
    ):
        tuned_encoders.train(job)
    fixed = replace(job, recipe=tuning("all", "batch_norm=fixed"))
    whole = tuned_encoders.gradients(fixed, 1)
    pieces = tuned_encoders.gradients(fixed, 4)
    for name, gradient in whole.items():
        scale = max(1.0, float(gradient.abs().max()))
        torch.testing.assert_close(
            pieces[name] / scale, gradient / scale, atol=1e-5, rtol=0, msg=name
        )
