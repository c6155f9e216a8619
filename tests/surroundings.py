"""What every test runs in: one thread, a CPU that is given, a disk that nobody waits for; and
the process that commands are forked from.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import given_cpus
import preloaded
import pytest
import torch

from pipeline.foundation.compute import measured


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _no_device_is_seeded_that_is_not_there() -> Iterator[None]:
    """For each device that may come later, torch's `manual_seed` writes down from where it was
    called, which takes as long as many a test.
    """
    with pytest.MonkeyPatch.context() as patch:
        for device in (torch.cuda, torch.mtia, torch.xpu):
            if not device.is_available():
                patch.setattr(device, "manual_seed_all", lambda seed: None)
        yield


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
