"""Cross-encoders in training: each recipe learns the scenes, goes on where it stopped, and records what it rests on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from folders import tree
from tiny_bert import tiny_bert

from pipeline import settings, training
from pipeline.errors import InputError
from pipeline.files.digest import sha256
from pipeline.manifest import Manifest
from pipeline.settings.recipe import Pairs
from pipeline.store import FeatureStore
from pipeline.training.source import stored

SMALL = ("batch_size=16", "epochs=2", "decay_epoch=1")
SETTINGS = settings.load(Path(__file__).parents[2] / "params.yaml", (
    *(f"training.sample.{change}" for change in SMALL), "recipes.emb.learning_rate=0.003",
    "recipes.ce.learning_rate=0.003", "recipes.join.learning_rate=0.003", "recipes.ce-listwise.learning_rate=0.003"))

Make = Callable[..., training.TrainingJob]


class Stopped(Exception):
    pass


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("bert"), layers=1)


@pytest.fixture
def make(scenes: Manifest, store: FeatureStore, bert: Path, tmp_path: Path) -> Make:
    def job(recipe: str, sizes: dict[str, Any] | None = None, **changes: Any) -> training.TrainingJob:
        named = SETTINGS.recipe(recipe).model_copy(update=changes)
        return training.TrainingJob(
            scenes, stored(store.path, scenes, named), "region", "bert", recipe, named,
            SETTINGS.training_of("sample").model_copy(update={"bert": str(bert), **(sizes or {})}), 0,
            tmp_path / recipe)
    return job


@pytest.mark.parametrize("recipe", ["emb", "ce", "join", "join-ance"])
def test_a_recipe_learns_and_goes_on_where_it_stopped(make: Make, recipe: str, tmp_path: Path) -> None:
    job = make(recipe, {"epochs": 3}, pairs=Pairs(hard=0.5, val_images=4))

    def stop(epoch: int, step: int, log: object) -> None:
        if (epoch, step) == (1, 1):
            raise Stopped

    with pytest.raises(Stopped):
        training.train(job, on_step=stop)
    state, whole = training.train(job), replace(job, folder=tmp_path / "whole")
    training.train(whole)
    assert tree(job.folder) == tree(whole.folder)
    assert state.history[-1]["loss"] < state.history[0]["loss"]
    assert 0 <= state.history[-1]["rsum"] <= 600


def test_joint_training_is_selected_by_the_mean_of_both(make: Make) -> None:
    state = training.train(make("join"))
    row = state.history[0]
    assert row["rsum"] == pytest.approx((row["emb_rsum"] + row["ce_rsum"]) / 2)
    assert {"ce_loss", "ce_first", "loss", "violations"} <= set(row)


def test_listwise_starts_from_the_embeddings_that_find_its_negatives(make: Make, scenes: Manifest) -> None:
    emb, job = make("emb"), make("ce-listwise", {"epochs": 1})
    job = replace(job, start=emb.folder)
    with pytest.raises(InputError, match="no head there; train it with"):
        training.train(job)
    training.train(emb)
    rates: list[float] = []
    state = training.train(job, on_step=lambda epoch, step, log: rates.append(log["first"]))
    assert len(state.history) == 1
    said = json.loads((job.folder / "head.json").read_text())
    assert said["start"] == sha256(emb.folder / "best.safetensors")
    assert said["scorer"] == "cross"
    longer = replace(job, training=job.training.model_copy(update={"epochs": 1, "steps": 1}), if_changed="redo")
    before = training.load_head(emb.folder, scenes, emb.source).model
    frozen = replace(longer, recipe=longer.recipe.model_copy(update={"learning_rate": 1e-12}))
    training.train(frozen)
    after = training.load_head(frozen.folder, scenes, frozen.source).model
    for name, weight in before.state_dict().items():
        np.testing.assert_allclose(after.state_dict()[name].numpy(), weight.numpy(), atol=1e-6)
    other = make("ce-listwise", architecture=settings.Named(name="cross", image_norm=True))
    with pytest.raises(InputError, match="give both recipes the same architecture"):
        training.train(replace(other, start=emb.folder, folder=job.folder / "other"))


def test_another_head_may_find_the_negatives(make: Make, scenes: Manifest, store: FeatureStore, tmp_path: Path) -> None:
    retriever = training.TrainingJob(scenes, store, "region", "bigru", "vse_pp", SETTINGS.recipe("vse_pp"),
                                     SETTINGS.training_of("sample"), 0, tmp_path / "retriever")
    training.train(retriever)
    job = replace(make("ce", {"epochs": 1}, pairs=Pairs(hard=1.0, retriever="retriever", val_images=4)),
                  retriever=retriever.folder)
    training.train(job)
    assert json.loads((job.folder / "head.json").read_text())["retriever"] == sha256(
        retriever.folder / "best.safetensors")
    with pytest.raises(InputError, match="need a head that reads the stored grid"):
        training.train(replace(job, feature="grid", folder=tmp_path / "grid"))


def test_steps_make_epochs_of_their_own_length(make: Make) -> None:
    seen: list[tuple[int, int]] = []
    training.train(make("emb", {"steps": 10}), on_step=lambda epoch, step, log: seen.append((epoch, step)))
    assert seen == [(epoch, step) for epoch in range(2) for step in range(5)]


def test_boxes_are_part_of_what_it_reads_and_may_be_left_out(make: Make) -> None:
    job = make("emb", {"epochs": 1})
    training.train(job)
    assert json.loads((job.folder / "head.json").read_text())["width"] == job.source.layout.dimension + 6
    without = make("emb", {"epochs": 1}, architecture=settings.Named(name="cross", boxes=False))
    with pytest.raises(InputError, match="holds a head trained with other settings"):
        training.train(without)
    training.train(replace(without, folder=job.folder / "other"))


def test_only_an_architecture_that_scores_pairs_is_trained_to(make: Make) -> None:
    job = make("ce", architecture=settings.Named(name="two_tower"))
    with pytest.raises(InputError, match="architecture two_tower does not score pairs"):
        training.train(job)
