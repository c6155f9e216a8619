"""Small things that many tests use: a rendered corpus, its manifest, and stores made from it in
seconds.
"""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Iterator
from pathlib import Path

import given_cpus
import numpy as np
import preloaded
import pytest
import torch

from pipeline.foundation import manifest
from pipeline.foundation.compute import measured
from pipeline.foundation.manifest import Manifest, sample
from pipeline.make.features import extraction
from pipeline.make.features.extractors import Runtime
from pipeline.make.features.store import FeatureStore

# Its fixtures are there for all tests.
pytest_plugins = ["command_line", "quick"]
# Imports and collecting make what stays: looking there for garbage takes a tenth of that time.
gc.disable()
TINY_CNN = {"network": "test_efficientnet", "weights": "untrained", "image_size": 64}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a finished run come first: they take longest, and two workers share the work
    evenly.
    """
    items.sort(key=lambda item: "finished" not in getattr(item, "fixturenames", ()))


def pytest_collection_finish() -> None:
    """The collector leaves alone what all tests have: it walks through less, and forked processes
    copy less.
    """
    gc.enable()
    gc.collect()
    gc.freeze()
    # Else libraries tell at the end of leaks that are none; earlier, pytest would look through all.
    atexit.register(gc.unfreeze)


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _lines_are_whole() -> None:
    os.environ.pop("COLUMNS", None)


@pytest.fixture(autouse=True, scope="session")
def _no_disk_is_waited_for() -> Iterator[None]:
    """What tests write need not outlive a crash of the machine; half of their time would be
    spent on that.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", preloaded.no_fsync)
        yield


@pytest.fixture(autouse=True, scope="session")
def _given_cpu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The same answers on every machine, also in processes that tests start. The user's own are
    never read.
    """
    with pytest.MonkeyPatch.context() as patch:
        folder = given_cpus.write(tmp_path_factory.mktemp("cpu"), given_cpus.PLAIN)
        patch.setenv(measured.FOLDER, str(folder))
        yield folder


@pytest.fixture(autouse=True)
def _nothing_measured(_given_cpu: Path) -> Iterator[None]:
    yield
    given_cpus.refuse_measured(_given_cpu)


@pytest.fixture(params=[given_cpus.PLAIN, given_cpus.AMX], ids=["plain", "amx"])
def given_cpu(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[given_cpus.Measurements]:
    """A CPU that refuses half precision, and one on which it is fast."""
    with given_cpus.given(tmp_path / "given-cpu", request.param) as cpu:
        yield cpu


@pytest.fixture(autouse=True, scope="session")
def _commands_are_started(request: pytest.FixtureRequest) -> None:
    """What they are forked from imports all while other tests run."""
    if any("commands" in getattr(item, "fixturenames", ()) for item in request.session.items):
        request.getfixturevalue("commands")


@pytest.fixture(scope="session")
def commands(_given_cpu: Path, tmp_path_factory: pytest.TempPathFactory) -> preloaded.Commands:
    """`pipeline` and `dvc`, each in a process of its own that starts at once."""
    of_worker, worker = tmp_path_factory.getbasetemp(), "PYTEST_XDIST_WORKER" in os.environ
    folder, session = (of_worker.parent, os.getppid()) if worker else (of_worker, os.getpid())
    return preloaded.commands(folder / "commands", session)


@pytest.fixture(scope="session")
def forkserver(commands: preloaded.Commands) -> Iterator[str]:
    """Processes that are started in this way, and dask's workers, are forked from one that has
    imported all.
    """
    import dask

    commands.run_forkserver()
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        yield "forkserver"


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 rendered scenes: 16 train, 4 val, 4 test."""
    return sample.render(
        tmp_path_factory.mktemp("corpus") / "sample", images=24, size=64, seed=0
    ).parent


@pytest.fixture(scope="session")
def scenes(corpus: Path) -> Manifest:
    return manifest.build("sample", corpus / "images", corpus / "dataset_sample.json")


@pytest.fixture
def job(scenes: Manifest, tmp_path: Path) -> extraction.ExtractionJob:
    """Grid features of the scenes by a tiny untrained network, five images a shard."""
    engine = extraction.EngineSpec("grid", {**TINY_CNN, "grid": 2}, Runtime())
    return extraction.ExtractionJob(
        scenes, scenes.images_folder, tmp_path / "grid.zarr", engine, batch_size=4, shard_images=5
    )


@pytest.fixture(scope="session")
def store(scenes: Manifest, tmp_path_factory: pytest.TempPathFactory) -> FeatureStore:
    """The same features, extracted once for all tests that only read them."""
    path = tmp_path_factory.mktemp("store") / "region.zarr"
    engine = extraction.EngineSpec("pyramid", {**TINY_CNN, "image_size": 128}, Runtime())
    job = extraction.ExtractionJob(
        scenes, scenes.images_folder, path, engine, batch_size=8, shard_images=10
    )
    extraction.extract(job)
    return FeatureStore(path)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
