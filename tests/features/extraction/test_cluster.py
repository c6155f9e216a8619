"""DaskExecutor: the same bytes as in one process, also when one of them dies."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from folders import tree
from waiting import LONGEST, until

from pipeline.foundation.compute import cluster
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features import extraction
from pipeline.make.features.extraction import worker
from pipeline.make.features.extractors import Runtime
from pipeline.make.features.store import ledger, read_header

pytestmark = pytest.mark.usefixtures("forkserver")


@pytest.fixture(scope="module")
def there() -> Iterator[Any]:
    """A running cluster with one worker."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as started:
        yield started


def hold(begun: Path, over: Path, first: int = 0) -> None:
    """Make this process, a worker, decode only its first images before a file is there; say when it
    is asked to.
    """
    decode, asked = worker.decode, count()

    def held(*arguments: Any) -> Any:
        if next(asked) >= first:
            begun.touch()
            until(over.exists, "the word to go on")
        return decode(*arguments)

    worker.decode = held


def test_one_of_two_workers_is_killed_midway(
    there: Any, job: extraction.ExtractionJob, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    """Beside another cluster, of which nothing is said."""
    job = replace(job, shard_images=3)
    whole, over = replace(job, store=tmp_path / "whole.zarr"), tmp_path / "over"
    extraction.extract(whole)
    killed: list[str] = []
    written: list[int] = []
    with cluster.local(2) as workers:
        processes = workers.client.run(os.getpid)
        workers.client.run(
            hold, tmp_path / "begun", over, 3
        )  # each is in its second shard until one is killed

        def on_images(count: int) -> None:
            written.append(count)
            if not killed:
                killed.append(
                    next(address for address, tasks in workers.client.processing().items() if tasks)
                )
                os.kill(processes[killed[0]], signal.SIGKILL)
                over.touch()

        extraction.extract(job, workers, on_images=on_images)
        assert processes[killed[0]] not in workers.client.run(os.getpid).values()
    assert sum(written) == 24
    assert tree(job.store) == tree(whole.store)
    assert not [each for each in recwarn if "already in use" in str(each.message)]


def test_bad_input_ends_in_one_line_from_a_worker_too(
    there: Any, job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    with cluster.running(there.scheduler_address) as workers:
        with pytest.raises(InputError, match="no such folder"):
            extraction.extract(replace(job, images_folder=tmp_path / "nowhere"), workers)
        with pytest.raises(InputError, match="is not available"):
            extraction.extract(
                replace(job, engine=replace(job.engine, runtime=Runtime("cuda:99"))), workers
            )


def test_a_worker_that_does_not_see_the_store_is_named(
    there: Any, job: extraction.ExtractionJob
) -> None:
    who = rf"worker \S+ on {re.escape(socket.gethostname())}: {re.escape(str(job.store))}: no such folder there"
    with cluster.running(there.scheduler_address) as workers, pytest.raises(InputError, match=who):
        extraction.extract(job, workers, on_start=lambda images: shutil.rmtree(job.store))


def test_a_folder_is_the_same_one_wherever_a_worker_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed_out = []

    def hand_out(function: Any, first: Any, waiting: Any, running: int) -> list[Any]:
        handed_out.append(function)
        return []

    class Done(list[Any]):
        futures = ()

    monkeypatch.setattr("distributed.as_completed", Done)
    client: Any = SimpleNamespace(cancel=lambda futures: None)
    executor = cluster.DaskExecutor(client, elsewhere=False)
    monkeypatch.setattr(executor, "_hand_out", hand_out)
    (tmp_path / "here" / "store").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    assert list(executor.each(max, [], Path("store"))) == []
    monkeypatch.chdir(tmp_path)
    assert handed_out.pop()(3, 5) == 5
    assert list(executor.each(max, [], Path("here", "gone"))) == []
    with pytest.raises(InputError, match=f"^{tmp_path}/here/gone: no such folder there"):
        handed_out.pop()(3, 5)


def no_file_larger_than(size: int) -> int:
    """Have this process fail midway in a larger file, in bytes, as on a full disk; how large they
    could be before.
    """
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    return before


def test_a_full_disk_of_a_worker_is_said_with_the_file_and_the_run_goes_on_later(
    there: Any, job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    whole = replace(job, store=tmp_path / "whole.zarr")
    extraction.extract(whole)
    with cluster.running(there.scheduler_address) as workers:
        [before] = workers.client.run(no_file_larger_than, 9000).values()  # a shard has some 10 KB
        try:
            with pytest.raises(OSError, match="File too large") as full:
                extraction.extract(job, workers)
            workers.client.submit(int, pure=False).result(
                LONGEST
            )  # its thread is done with the tasks before it
        finally:
            workers.client.run(no_file_larger_than, before)
        assert full.value.errno == errno.EFBIG
        assert Path(str(full.value.filename)).is_relative_to(job.store / "features")
        assert extraction.extract(job, workers).extracted == 24
    assert tree(job.store) == tree(whole.store)


def test_a_running_cluster(there: Any, job: extraction.ExtractionJob, tmp_path: Path) -> None:
    extraction.extract(job)
    with cluster.running(there.scheduler_address) as workers:
        shared = replace(job, store=tmp_path / "shared.zarr")
        assert extraction.extract(shared, workers).extracted == 24
    assert tree(shared.store) == tree(job.store)


def test_no_cluster_there() -> None:
    with (
        pytest.raises(InputError, match="no dask scheduler"),
        cluster.running("tcp://127.0.0.1:1", timeout=0.05),
    ):
        pass


def test_a_cluster_without_workers() -> None:
    from distributed import LocalCluster

    with (
        LocalCluster(n_workers=0, dashboard_address=":0") as empty,
        pytest.raises(InputError, match="has no worker"),
        cluster.running(empty.scheduler_address, timeout=1),
    ):
        pass


def extract_until_interrupted(job: extraction.ExtractionJob, address: str) -> None:
    """In a process of its own: ends with the exit code 130 if Ctrl-C interrupts it."""
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell in the background has its children ignore it
    try:
        with cluster.running(address) as workers:
            extraction.extract(job, workers)
    except KeyboardInterrupt:
        sys.exit(130)


def test_a_run_that_is_interrupted_leaves_nothing_behind(
    there: Any, job: extraction.ExtractionJob, tmp_path: Path
) -> None:
    from distributed import Client

    job = replace(job, batch_size=1, shard_images=24)
    begun, over = tmp_path / "begun", tmp_path / "over"
    with Client(there) as watching:
        watching.run(hold, begun, over)
        run = get_context("forkserver").Process(
            target=extract_until_interrupted, args=(job, there.scheduler_address)
        )
        run.start()
        try:
            until(lambda: begun.exists() or not run.is_alive(), "the first image")
            assert run.is_alive()
            assert run.pid is not None
            os.kill(run.pid, signal.SIGINT)
            run.join(LONGEST)
            assert run.exitcode == 130
            assert not watching.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
        finally:
            run.kill()
            over.touch()
        watching.submit(int).result(LONGEST)  # waits for the worker's only thread
    assert ledger.pending(job.store, read_header(job.store)[0]) == [
        0
    ]  # the worker has not gone on to the shard's end
