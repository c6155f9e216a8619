"""Two processes that share a batch are one that holds it whole."""

from __future__ import annotations

import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pandas as pd
import pytest
import torch
from folders import tree
from lightning_fabric import Fabric
from lightning_fabric.strategies import DDPStrategy
from preloaded import Commands
from test_step import PAIRS, batch, gradients, step
from torch import nn

from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.make.dual_encoders.tuning.network import Scaled
from pipeline.make.features.store import FeatureStore
from pipeline.make.text.bigru import BiGRUText
from pipeline.make.text.vocabulary import Vocabulary
from pipeline.make.training import checkpoint
from pipeline.make.training.batches import Batch, Drawing, TrainingBatches
from pipeline.make.training.processes import SeveralProcesses, launch
from pipeline.make.training.step import TrainingStep

ROOT = Path(__file__).parents[2]
OBJECTIVES = ("triplet", "random_k", "scaled")


def half(rank: int) -> Batch:
    """A process's part of the batch, padded no further than its own captions need."""
    whole, rows = batch(), slice(rank * PAIRS // 2, (rank + 1) * PAIRS // 2)
    captions = whole.captions.take(rows)
    return Batch(
        whole.images.take(rows),
        replace(captions, values=captions.values[:, : int(captions.counts.max())]),
    )


def step_of(objective: str, pieces: int = 1) -> TrainingStep:
    """A step by an objective; "scaled" has a scale and a bias that the network learns."""
    if objective != "scaled":
        return step("region", objective, pieces)
    one = step("region", "infonce", pieces)
    one.model.scale = nn.Parameter(torch.tensor(1.5, dtype=torch.float64))
    one.model.bias = nn.Parameter(torch.tensor(-0.5, dtype=torch.float64))
    one.objective = Scaled(one.objective, one.model.scale, one.model.bias)
    return one


def in_each(fabric: Any, folder: Path) -> None:
    """What each process does: the gradients and statistics of its share, for each way to embed and
    draw.
    """
    torch.set_num_threads(1)
    processes = SeveralProcesses(fabric)
    for pieces in (1, 2):
        for objective in OBJECTIVES:
            one = step_of(objective, pieces)
            one.update.processes = processes
            torch.manual_seed(7 + processes.rank)  # as if dropout had drawn differently
            loss = one.gradients(half(processes.rank))["loss"]
            found = {
                **gradients(one),
                **dict(one.model.named_buffers()),
                "loss": torch.tensor(loss),
            }
            torch.save(found, folder / f"{objective}-{pieces}-{processes.rank}.pt")
    processes.wait()


def test_gradients_are_those_of_one_process(forkserver: str, tmp_path: Path) -> None:
    Fabric(accelerator="cpu", devices=2, strategy=DDPStrategy(start_method=forkserver)).launch(
        in_each, tmp_path
    )
    for objective in OBJECTIVES:
        alone = step_of(objective)
        torch.manual_seed(7)
        loss = alone.gradients(batch())["loss"]
        expected = {
            **gradients(alone),
            **dict(alone.model.named_buffers()),
            "loss": torch.tensor(loss),
        }
        for file in tmp_path.glob(f"{objective}-*.pt"):
            found = torch.load(file)
            assert found.keys() == expected.keys()
            for name, value in found.items():
                torch.testing.assert_close(
                    value,
                    expected[name],
                    rtol=1e-5,
                    atol=1e-6,
                    msg=lambda text, at=f"{file.name} {name}": f"{at}: {text}",
                )
        assert ("scale" in expected) is (objective == "scaled")
    assert len(list(tmp_path.iterdir())) == 12


@pytest.fixture(scope="module")
def command(
    scenes: Manifest, store: FeatureStore, tmp_path_factory: pytest.TempPathFactory
) -> tuple[object, ...]:
    """A small training, as a user types it."""
    root = tmp_path_factory.mktemp("project")
    scenes.save(root / "data" / "sample.parquet")
    (root / "features" / "sample").mkdir(parents=True)
    (root / "features" / "sample" / "region.zarr").symlink_to(store.path)
    small = [
        f"-Straining.sample.{change}"
        for change in (
            "dimension=8",
            "word_dimension=4",
            "batch_size=16",
            "epochs=2",
            "steps=4",
            "decay_epoch=1",
        )
    ]
    return (
        "pipeline",
        "train",
        "--feature",
        "region",
        "--root",
        root,
        "--params",
        ROOT / "params.yaml",
        *small,
    )


@pytest.fixture(scope="module")
def of_two(
    command: tuple[object, ...], commands: Commands, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The head of two processes on one machine."""
    folder = tmp_path_factory.mktemp("of-two") / "head"
    assert commands(*command, "--processes", "2", "--out", folder).stdout.count("best epoch") == 1
    return folder


def test_two_processes_train_the_same_head(
    command: tuple[object, ...], commands: Commands, of_two: Path, tmp_path: Path
) -> None:
    """With --processes 2 and without."""
    commands(*command, "--out", tmp_path / "1")
    pd.testing.assert_frame_equal(
        *(pd.read_csv(head / "history.csv") for head in (tmp_path / "1", of_two)), rtol=1e-4
    )
    refused = commands(*command, "--processes", "2", "--out", tmp_path / "1", "--seed", "5", code=2)
    assert "Traceback" not in refused.stderr
    assert refused.stderr.count("seed was 0, is 5") == 1


KILLED = """
import os, signal
from pipeline.make.training.divergence import Watch
start, epochs = Watch.start_epoch, []
def killing(watch):
    epochs.append(watch)
    if len(epochs) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    start(watch)
Watch.start_epoch = killing
"""


def on_two_machines(
    commands: Commands, *parts: tuple[object, ...], code: int = 0, **of_second: str
) -> list[CompletedProcess[str]]:
    """Runs a command on each of two machines, one process each, with the variables that torchrun
    gives.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def run(rank: int) -> CompletedProcess[str]:
        given = {
            "RANK": rank,
            "GROUP_RANK": rank,
            "LOCAL_RANK": 0,
            "WORLD_SIZE": 2,
            "LOCAL_WORLD_SIZE": 1,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "TORCHELASTIC_RUN_ID": "test",
        }
        more = of_second if rank else {}
        return commands(
            *parts[rank],
            code=None if more else code,
            **{k: str(v) for k, v in given.items()},
            **more,
        )

    with ThreadPoolExecutor(2) as machines:
        return list(machines.map(run, (0, 1)))


def error(ran: CompletedProcess[str]) -> str:
    """The only error that a command printed."""
    (line,) = (line for line in ran.stderr.splitlines() if line.startswith("error: "))
    assert "Traceback" not in ran.stderr
    return line


def test_two_machines_train_the_head_of_one(
    command: tuple[object, ...], commands: Commands, of_two: Path, tmp_path: Path
) -> None:
    """To the byte, also after the second machine was lost; the first alone writes."""
    shared, apart = (*command, "--out", tmp_path / "two"), (*command, "--out", tmp_path / "apart")
    lost, killed = on_two_machines(commands, shared, apart, code=2, BEFORE=KILLED)
    assert "another training process has ended" in error(lost)
    assert killed.returncode == -signal.SIGKILL
    assert checkpoint.state(tmp_path / "two").epochs == 1
    assert not (tmp_path / "apart").exists()
    for refused in on_two_machines(commands, shared, apart, code=2):
        assert (
            "not all processes of the training see the same finished epochs; give all machines"
            in error(refused)
        )
    first, second = on_two_machines(commands, shared, shared)
    assert (first.stdout.count("best epoch"), second.stdout) == (1, "")
    assert tree(tmp_path / "two") == tree(of_two)


def test_a_batch_is_shared_equally_or_not_at_all(scenes: Manifest, store: FeatureStore) -> None:
    split = scenes.split("train")
    text = BiGRUText(Vocabulary.of(split.captions))
    with pytest.raises(InputError, match="a batch of 16 pairs cannot be shared by 3"):
        TrainingBatches(store, split, text, Drawing(16, 0, (0, 3)), 0.2, 0.2)
    whole = next(iter(TrainingBatches(store, split, text, Drawing(16, 0), 0.2, 0.2).epoch(1)))
    for rank in (0, 1):
        own = next(
            iter(TrainingBatches(store, split, text, Drawing(16, 0, (rank, 2)), 0.2, 0.2).epoch(1))
        )
        rows = slice(rank * 8, rank * 8 + 8)
        for side, all_of_it in (
            (own.images, whole.images.take(rows)),
            (own.captions, whole.captions.take(rows)),
        ):
            assert side.ids is not None
            assert all_of_it.ids is not None
            assert torch.equal(side.ids, all_of_it.ids)
            assert torch.equal(side.counts, all_of_it.counts)
            assert torch.equal(side.values, all_of_it.values[:, : side.values.shape[1]])


def test_gpus_that_are_not_there_are_refused() -> None:
    assert launch(1, "cpu").count == 1
    with pytest.raises(InputError, match="training on 3 GPUs"):
        launch(3, "cuda")


def test_what_torchrun_started_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "TORCHELASTIC_RUN_ID": "test",
        "RANK": "0",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=r"torchrun started 2 processes, not 4"):
        launch(4, "cpu")
    with pytest.raises(InputError, match="training on 1 GPUs of this machine"):
        launch(2, "cuda:7")


@pytest.mark.parametrize(
    "changed",
    [
        {"RANK": "2"},
        {"RANK": "-1"},
        {"WORLD_SIZE": "two"},
        {"LOCAL_RANK": "1"},
        {"LOCAL_WORLD_SIZE": "0"},
        {"LOCAL_WORLD_SIZE": ""},
        {"WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "2"},
    ],
)
def test_what_torchrun_does_not_set_is_refused_and_not_waited_for(
    changed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of a number that there is not would wait for the others for half an hour."""
    given = {
        "TORCHELASTIC_RUN_ID": "test",
        "RANK": "1",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
    }
    for name, value in (given | changed).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(
        InputError, match=r"RANK=.*, LOCAL_WORLD_SIZE=.* are not what torchrun sets"
    ):
        launch(1, "cpu")
