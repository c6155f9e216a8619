"""Training that is stopped between two writes, or that draws random numbers, goes on as if it had
not been.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from folders import tree

from pipeline.foundation import settings
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.make import training
from pipeline.make.features.store import FeatureStore
from pipeline.make.training import checkpoint

CHANGES = tuple(
    f"training.sample.{change}"
    for change in (
        "dimension=16",
        "word_dimension=8",
        "batch_size=16",
        "epochs=2",
        "decay_epoch=1",
        "minimum_count=1",
    )
)
SETTINGS = settings.load(
    Path(__file__).parents[2] / "params.yaml",
    (*CHANGES, "recipes.vse2ad.objective={name: random_k}"),
)


class Stopped(Exception):
    pass


def job_in(folder: Path, scenes: Manifest, store: FeatureStore) -> training.TrainingJob:
    """A head whose objective draws how many negatives it takes at each step."""
    return training.TrainingJob(
        scenes,
        store,
        "region",
        "bigru",
        "vse2ad",
        SETTINGS.recipe("vse2ad"),
        SETTINGS.training_of("sample"),
        0,
        folder,
    )


@pytest.fixture
def job(scenes: Manifest, store: FeatureStore, tmp_path: Path) -> training.TrainingJob:
    return job_in(tmp_path / "head", scenes, store)


@pytest.fixture(scope="module")
def whole(
    scenes: Manifest, store: FeatureStore, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """The files of the head that was not stopped."""
    of_whole = job_in(tmp_path_factory.mktemp("whole") / "head", scenes, store)
    training.train(of_whole)
    return tree(of_whole.folder)


def test_what_an_epoch_draws_does_not_depend_on_where_training_was_cut(
    job: training.TrainingJob, whole: dict[str, bytes]
) -> None:
    def stop(epoch: int, step: int, log: object) -> None:
        if (epoch, step) == (2, 3):
            raise Stopped

    with pytest.raises(Stopped):
        training.train(job, on_step=stop)
    training.train(job)
    assert tree(job.folder) == whole


def test_the_best_network_is_kept_before_the_epoch_counts_as_done(
    job: training.TrainingJob, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    save, written = checkpoint.save_tensors, []

    def stop_after_the_first(*arguments: Any) -> None:
        if written:
            raise Stopped
        save(*arguments)
        written.append(arguments[0])

    monkeypatch.setattr(checkpoint, "save_tensors", stop_after_the_first)
    for _ in range(3):  # each attempt writes one file more, and then stops
        written.clear()
        with pytest.raises(Stopped):
            training.train(job)
    monkeypatch.setattr(checkpoint, "save_tensors", save)
    training.train(job)
    assert tree(job.folder)["best.safetensors"] == whole["best.safetensors"]


def test_a_head_that_is_replaced_stays_until_the_new_one_is_finished(
    job: training.TrainingJob, whole: dict[str, bytes], trained_head: Path, tmp_path: Path
) -> None:
    shutil.copytree(trained_head, job.folder)
    before = tree(job.folder)
    other = replace(job, if_changed="redo")

    def stop(epoch: int, step: int, log: object) -> None:
        if epoch == 2:
            raise Stopped

    for _ in range(2):
        with pytest.raises(Stopped):
            training.train(other, on_step=stop)
        assert tree(job.folder) == before
        assert checkpoint.state(tmp_path / "head.successor").epochs == 1
    training.train(other)
    assert tree(job.folder) == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["head"]


def test_a_run_stopped_before_the_last_line_of_its_history_writes_it(
    job: training.TrainingJob, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = checkpoint.write_history

    def stop_at_the_last(folder: Path, state: checkpoint.State) -> None:
        if state.epochs == job.training.epochs:
            raise Stopped
        write(folder, state)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write_history", stop_at_the_last)
        with pytest.raises(Stopped):
            training.train(job)
    training.train(job)
    assert tree(job.folder) == whole


def test_a_run_that_lost_its_best_epoch_begins_again(
    job: training.TrainingJob, whole: dict[str, bytes]
) -> None:
    def stop(row: object) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        training.train(job, on_epoch=stop)
    (job.folder / "best.safetensors").unlink()
    training.train(job)
    assert tree(job.folder) == whole


def test_a_setting_is_corrected_as_long_as_no_epoch_is_finished(job: training.TrainingJob) -> None:
    def stop(at: int) -> Any:
        def on_step(epoch: int, step: int, log: object) -> None:
            if epoch == at:
                raise Stopped

        return on_step

    with pytest.raises(Stopped):
        training.train(job, on_step=stop(1))
    other = replace(job, training=job.training.model_copy(update={"batch_size": 8}))
    with pytest.raises(Stopped):
        training.train(other, on_step=stop(2))
    with pytest.raises(InputError, match=r"training\.batch_size was 8, is 16; --if-changed redo"):
        training.train(job)
    training.train(other)
