"""Training: selection on val, exact resumption, and what is recorded of the machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from folders import tree

from pipeline.foundation.compute import half, machine, made_with
from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.make import training
from pipeline.make.features.store import FeatureStore
from pipeline.make.training import checkpoint, optimizer


@pytest.mark.specification
def test_training_learns_and_selects_on_val(
    job: training.TrainingJob,
    scenes: Manifest,
    store: FeatureStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rates: list[float] = []
    set_rate = optimizer.set_rate
    monkeypatch.setattr(
        optimizer, "set_rate", lambda of, rate: (rates.append(rate), set_rate(of, rate))
    )
    job = replace(job, recipe=job.recipe.model_copy(update={"decay": "linear"}))
    state = training.train(job)
    assert rates == pytest.approx(
        [job.recipe.learning_rate * (15 - step) / 15 for step in range(15)]
    )
    assert state.history[-1]["loss"] < state.history[0]["loss"]
    history = pd.read_csv(job.folder / "history.csv")
    assert history["epoch"].tolist() == [1, 2, 3]
    assert {"loss", "negatives", "align", "uniform", "i2t R@1", "t2i R@10", "RSUM"} <= set(history)
    assert state.best == history["RSUM"].idxmax() + 1
    steps = pd.read_csv(job.folder / "steps.csv")
    assert steps[["epoch", "step"]].to_numpy().tolist() == [
        [epoch, step] for epoch in (1, 2, 3) for step in (1, 2, 3, 4, 5)
    ]
    assert steps["steps"].tolist() == list(range(1, 16))
    assert {"loss", "negatives", "align", "uniform", "gradient"} <= set(steps)
    for name in ("loss", "negatives", "uniform"):
        np.testing.assert_allclose(steps.groupby("epoch")[name].mean(), history[name], rtol=1e-12)
    head = training.Head.open(job.folder)
    _, metadata = checkpoint.load_tensors(job.folder / "best.safetensors")
    assert metadata == {"epoch": state.best}
    images, captions = head.embed(store, scenes.split("val"), 3)
    whole = head.embed(store, scenes.split("val"), 64)
    np.testing.assert_allclose(images, whole[0], atol=1e-5)
    np.testing.assert_allclose(captions, whole[1], atol=1e-5)
    rsum = evaluate(images @ captions.T, scenes.split("val").caption_image).rsum
    assert rsum == pytest.approx(state.history[state.best - 1]["RSUM"])


def test_steps_of_earlier_epochs_stay(tmp_path: Path) -> None:
    logs = [{"loss": 2.0, "negatives": 3.0}, {"loss": 1.0, "negatives": 2.0}]
    checkpoint.write_steps(tmp_path, 1, 2, logs)
    checkpoint.write_steps(tmp_path, 2, 2, logs)
    checkpoint.write_steps(tmp_path, 2, 2, logs)  # again, after a run that was cut behind it
    assert pd.read_csv(tmp_path / "steps.csv")["steps"].tolist() == [1, 2, 3, 4]
    checkpoint.write_steps(
        tmp_path, 3, 3, [{"loss": 2.0, "K": 5.0}]
    )  # which is logged only from now on
    steps = pd.read_csv(tmp_path / "steps.csv")
    assert steps["K"].isna().tolist() == [True] * 4 + [False]
    assert steps["negatives"].tolist()[:4] == [3, 2, 3, 2]
    header = (tmp_path / "steps.csv").read_text().splitlines()[0].encode()
    for damaged in (
        b"\xff\xfe\n",
        header + b"\n\xc2\xb2,0,1,1,2.0\n",
    ):  # the latter begins with a superscript two
        (tmp_path / "steps.csv").write_bytes(damaged)
        checkpoint.write_steps(tmp_path, 2, 2, logs)
        assert pd.read_csv(tmp_path / "steps.csv")["steps"].tolist() == [3, 4]


@pytest.mark.slow
def test_steps_of_a_long_training_are_averaged(tmp_path: Path) -> None:
    """As many as on COCO, 25 epochs of 4426: rows for means, each within an epoch."""
    epochs, number = 25, np.arange(4426)
    for epoch in range(epochs):
        checkpoint.write_steps(
            tmp_path, epoch + 1, epochs, [{"loss": float(value + epoch)} for value in number]
        )
    steps = pd.read_csv(tmp_path / "steps.csv")
    assert 3900 < len(steps) < checkpoint.ROWS + epochs
    assert steps["averaged"].max() == 28
    assert steps["averaged"].cumsum().tolist() == steps["steps"].tolist()
    assert ((steps["epoch"] - 1) * len(number) + steps["step"]).tolist() == steps["steps"].tolist()
    assert steps["steps"].iloc[-1] == epochs * len(number)
    np.testing.assert_allclose(
        steps["loss"], steps["epoch"] + steps["step"] - 2 - (steps["averaged"] - 1) / 2
    )


class Cut(Exception):
    pass


def test_cut_anywhere_and_resumed_it_is_bit_identical(
    job: training.TrainingJob, whole: dict[str, bytes]
) -> None:
    """Stopped four times; each time training resumes from the checkpoint."""
    for moment in ((1, 4), (2, 1), (2, 5), (3, 3)):

        def cut(epoch: int, step: int, log: object, moment: tuple[int, int] = moment) -> None:
            if (epoch, step) == moment:
                raise Cut

        with pytest.raises(Cut):
            training.train(job, on_step=cut)
    training.train(job)
    assert tree(job.folder) == whole


def test_the_scale_of_fp16_is_kept_from_epoch_to_epoch(
    job: training.TrainingJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resumed run goes on with it, and with the number of steps since it changed."""
    monkeypatch.setattr(half, "slowdown", lambda precision: 0.5)
    job = replace(job, training=job.training.model_copy(update={"precision": "fp16"}))

    def cut(epoch: int, step: int, log: object) -> None:
        if epoch == 2:
            raise Cut

    with pytest.raises(Cut):
        training.train(job, on_step=cut)
    kept = checkpoint.state(job.folder).scaler
    assert kept["_growth_tracker"] == 5
    restored: list[object] = []
    monkeypatch.setattr(
        torch.amp.GradScaler, "load_state_dict", lambda self, state: restored.append(state)
    )
    with pytest.raises(Cut):
        training.train(job, on_step=cut)
    assert restored == [kept]


def test_the_record_says_which_machines_trained_it(
    job: training.TrainingJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(epoch: int, step: int, log: object) -> None:
        if (epoch, step) == (2, 3):
            raise Cut

    def recorded() -> list[dict[str, object]]:
        return training.HeadArtefact.open(job.folder).record.machines

    job = replace(job, training=job.training.model_copy(update={"epochs": 2}))
    first = made_with.record()
    assert first.keys() == {"torch", "processor", "threads"}
    first |= {"device": "cpu", "pieces": 1, "processes": 1}
    for _ in range(2):  # going on where one was, it is named once
        with pytest.raises(Cut):
            training.train(job, on_step=cut)
        assert recorded() == [first]
    monkeypatch.setattr(machine, "processor", lambda: "another")
    training.train(job)
    assert recorded() == [first, first | {"processor": "another"}]
    before = tree(job.folder)
    training.train(job)  # it is finished: this machine has no part in it
    assert tree(job.folder) == before


@pytest.mark.specification
def test_the_same_seed_gives_the_same_head(
    job: training.TrainingJob, whole: dict[str, bytes]
) -> None:
    training.train(job)
    assert tree(job.folder) == whole


def test_half_precision_that_is_slow_here_is_refused_before_anything_is_written(
    job: training.TrainingJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = replace(
        job, training=job.training.model_copy(update={"precision": "bf16", "epochs": 1})
    )
    monkeypatch.setattr(half, "slowdown", lambda precision: 499.0)
    with pytest.raises(InputError, match="precision bf16: this CPU multiplies 499 times slower"):
        training.train(short)
    assert not job.folder.exists()
    monkeypatch.setattr(half, "slowdown", lambda precision: 0.5)
    trained = training.train(short)
    monkeypatch.setattr(half, "slowdown", lambda precision: 499.0)
    assert training.train(short) == trained  # it is finished
