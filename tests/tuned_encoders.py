"""Dual encoders of any kind trained on, for a few small steps, and what must hold of the result."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from pipeline.foundation import settings
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import FineTuning
from pipeline.make import dual_encoders, training
from pipeline.make.dual_encoders import Usage
from pipeline.make.dual_encoders.tuning.course import TuningCourse
from pipeline.make.dual_encoders.tuning.job import TuningJob
from pipeline.make.dual_encoders.tuning.tuned import export
from pipeline.make.training import checkpoint
from pipeline.make.training.artefact import BEST

PARAMS = Path(__file__).parents[1] / "params.yaml"
SMALL = ("batch_size=8", "epochs=2", "steps=4", "learning_rate=0.01")
PICTURES = [
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8))
    for height, width in ((40, 70), (64, 32))
]
CAPTIONS = ["a red circle", "green"]


def tuning(name: str, *changes: str) -> FineTuning:
    every = (f"finetuning.{name}.{change}" for change in (*SMALL, *changes))
    return settings.load(PARAMS, tuple(every)).finetuning[name]


def job_of(model: str, scenes: Manifest, folder: Path, name: str = "projections") -> TuningJob:
    images = scenes.images_folder
    return TuningJob(model, scenes, images, name, tuning(name), 0, folder / "tuned")


def train(job: TuningJob, **more: Any) -> checkpoint.State:
    return training.train(job, course=TuningCourse, **more)


def tuned(job: TuningJob) -> str:
    train(job)
    return f"tuned:{job.folder}"


def gradients(job: TuningJob, pieces: int, mode: str = "train") -> dict[str, torch.Tensor]:
    data = job.open()
    course = TuningCourse(
        replace(job, recipe=job.recipe.model_copy(update={"pieces": pieces})), data
    )
    getattr(course.model, mode)()
    torch.manual_seed(0)
    course.step.gradients(next(iter(course.batches.epoch(0))))
    return {
        name: weight.grad
        for name, weight in course.model.network.named_parameters()
        if weight.grad is not None
    }


def check_what_changes(job: TuningJob) -> None:
    """Of a CLIP, what is chosen changes, and nothing else."""
    before, after = (
        {
            key.removeprefix("0.model."): value
            for key, value in dual_encoders.load(model, Usage()).network.state_dict().items()
        }
        for model in (job.model, tuned(job))
    )
    assert before.keys() == after.keys()
    changed = {key for key in before if not torch.equal(before[key], after[key])}
    of_block = {
        key for key in before if ".layers." in key and key.endswith("weight") and "norm" not in key
    }
    expected = {
        "projections": {"visual_projection.weight", "text_projection.weight", "logit_scale"},
        "lora": of_block | {"logit_scale"},
        "all": set(before) - {"vision_model.embeddings.position_ids"},
    }
    if job.name in expected:
        assert changed - expected[job.name] == set()
        assert len(changed) > 0.8 * len(expected[job.name])
    else:
        assert {
            key
            for key in changed
            if ".layers.0." in key or "embeddings" in key or "pre_layrnorm" in key
        } == set()
        assert {
            "vision_model.post_layernorm.weight",
            "text_model.final_layer_norm.weight",
        } <= changed
        assert any("vision_model.encoder.layers.1." in key for key in changed)
        assert any("text_model.encoder.layers.1." in key for key in changed)


def check_adapters_learn(job: TuningJob, layers_of_block: int) -> None:
    """Every adapter learns by the second step; in the first A has no gradient, because B is 0."""
    course = TuningCourse(job, job.open())
    course.model.train()
    first, second, *_ = course.batches.epoch(0)
    course.step(first)
    course.step.gradients(second)
    adapters = {
        name: weight for name, weight in course.model.network.named_parameters() if ".lora_" in name
    }
    layers = {name.split(".lora_")[0] for name in adapters}
    assert len(layers) == 2 * 2 * layers_of_block
    assert [
        name
        for name, weight in adapters.items()
        if weight.grad is None or not weight.grad.abs().max()
    ] == []


def check_merged_adapters(job: TuningJob) -> None:
    """Merged into the weights, adapters give the same vectors."""
    data = job.open()
    course = TuningCourse(job, data)
    checkpoint_of = train(job)
    course.model.load_state_dict(checkpoint.load_tensors(job.folder / BEST)[0])
    course.model.eval()
    merged = dual_encoders.load(f"tuned:{job.folder}", Usage())
    assert checkpoint_of.epochs == 2
    assert not any(".lora_" in name for name, _ in merged.network.named_parameters())
    np.testing.assert_allclose(
        merged.embed_captions(["a red circle"]),
        data.encoder.embed_captions(["a red circle"]),
        atol=1e-5,
    )


def exported(job: TuningJob, folder: Path) -> Any:
    """Train, write the model for its library into a folder, and open the encoder."""
    encoder = dual_encoders.load(tuned(job), Usage())
    with pytest.raises(
        InputError, match=f"is a model of {encoder.library}; write --to {encoder.library}"
    ):
        export(job.folder, "onnx", folder)
    export(job.folder, encoder.library, folder)
    shutil.rmtree(job.folder)
    return encoder


def compared(encoder: Any, images: Any, captions: Any) -> None:
    """Compare an encoder's vectors of PICTURES and CAPTIONS with a library's."""
    for found, own in (
        (encoder.embed_images([encoder.prepare(picture) for picture in PICTURES]), images),
        (encoder.embed_captions(CAPTIONS), captions),
    ):
        vectors = torch.as_tensor(getattr(own, "pooler_output", own)).detach()
        np.testing.assert_allclose(found, torch.nn.functional.normalize(vectors, dim=-1), atol=1e-5)
