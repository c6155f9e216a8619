"""Dual encoders trained on, with narrow random towers: what learns, what is kept, and the result as an encoder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_dual_encoders
import tiny_open_clip
import torch
from folders import tree

from pipeline import dual_encoders, settings, training
from pipeline.artefacts import Record
from pipeline.dual_encoders import Usage
from pipeline.dual_encoders.tuning import TUNINGS, TuningCourse, TuningJob
from pipeline.dual_encoders.tuning.course import PhotographBatches
from pipeline.dual_encoders.tuning.network import TunedNetwork
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError
from pipeline.settings import FineTuning
from pipeline.training import checkpoint
from stages import cli

PARAMS = Path(__file__).parents[2] / "params.yaml"
SMALL = ("batch_size=8", "epochs=2", "steps=4", "learning_rate=0.01")


def tuning(name: str, *changes: str) -> FineTuning:
    every = (f"finetuning.{name}.{change}" for change in (*SMALL, *changes))
    return settings.load(PARAMS, tuple(every)).finetuning[name]


@pytest.fixture(scope="session")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_dual_encoders.clip(tmp_path_factory.mktemp("clip") / "tiny-clip")


@pytest.fixture
def job(clip: Path, scenes: Manifest, tmp_path: Path) -> TuningJob:
    return TuningJob(f"clip:{clip}", scenes, scenes.images_folder, "projections", tuning("projections"), 0,
                     tmp_path / "tuned")


def train(job: TuningJob, **more: Any) -> training.checkpoint.State:
    return training.train(job, course=TuningCourse, **more)


def gradients(job: TuningJob, pieces: int, mode: str = "train") -> dict[str, torch.Tensor]:
    data = job.open()
    course = TuningCourse(replace(job, recipe=job.recipe.model_copy(update={"pieces": pieces})), data)
    getattr(course.model, mode)()
    torch.manual_seed(0)
    course.step.gradients(next(iter(course.epoch(0))))
    return {name: weight.grad for name, weight in course.model.network.named_parameters() if weight.grad is not None}


@pytest.mark.parametrize("name", ["projections", "blocks", "lora", "all"])
def test_what_is_chosen_changes_and_nothing_else(name: str, job: TuningJob) -> None:
    job = replace(job, recipe=tuning(name))
    before = dual_encoders.load(job.model, Usage()).network.state_dict()
    train(job)
    after = dual_encoders.load(f"tuned:{job.folder}", Usage()).network.state_dict()
    assert before.keys() == after.keys()
    changed = {key for key in before if not torch.equal(before[key], after[key])}
    of_block = {key for key in before if ".layers." in key and key.endswith("weight") and "norm" not in key}
    expected = {
        "projections": {"visual_projection.weight", "text_projection.weight", "logit_scale"},
        "lora": of_block | {"logit_scale"}, "all": set(before) - {"vision_model.embeddings.position_ids"}}
    if name in expected:
        assert changed - expected[name] == set()
        assert len(changed) > 0.8 * len(expected[name])
    else:
        assert {key for key in changed if ".layers.0." in key or "embeddings" in key or "pre_layrnorm" in key} == set()
        assert {"vision_model.post_layernorm.weight", "text_model.final_layer_norm.weight"} <= changed
        assert any("vision_model.encoder.layers.1." in key for key in changed)
        assert any("text_model.encoder.layers.1." in key for key in changed)
