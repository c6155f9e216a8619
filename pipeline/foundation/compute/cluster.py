"""Dask workers: processes of this machine, or a cluster that is already running."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pipeline.foundation.compute import machine
from pipeline.foundation.parts.errors import InputError, refusing

if TYPE_CHECKING:
    from distributed import Client, Future

Result = TypeVar("Result")
AHEAD = 2  # tasks handed out for each thread of the cluster, so that none waits for the next


class DaskExecutor:
    """Runs tasks on the workers of a connected dask client. If a worker dies, another one repeats
    its task.

    elsewhere: whether workers may be on other machines; their errors then name the worker and its
        host.
    """

    def __init__(self, client: Client, elsewhere: bool) -> None:
        self.client = client
        self.elsewhere = elsewhere

    @property
    def threads(self) -> int:
        """How many tasks all workers run at once; those that have not joined yet are not known."""
        return max(1, sum(self.client.nthreads().values()))

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function on a worker."""
        if self.elsewhere:
            function = partial(_said_where, function)
        result: Result = self._wait(self.client.submit(function, *arguments, pure=False))
        return result

    def each(
        self,
        function: Callable[..., Result],
        tasks: Iterable[Any],
        folder: Path | None = None,
        common: bytes | None = None,
    ) -> Generator[Result, None, None]:
        """Call a function with each task on all workers."""
        from distributed import as_completed

        waiting = iter(tasks)
        if folder is not None:
            function = partial(_in_folder, folder.absolute(), function)
        if self.elsewhere:
            function = partial(_said_where, function)
        first = []
        if common is not None:
            first.append(self._shared(common))
        running = as_completed(self._hand_out(function, first, waiting, 0))
        try:
            for future in running:
                yield self._wait(future)
                for more in self._hand_out(function, first, waiting, running.count()):
                    running.add(more)
        finally:
            with suppress(OSError):  # the cluster may be gone
                self.client.cancel([*running.futures, *first])

    def _shared(self, common: bytes) -> Future:
        """Send bytes that all tasks need to one worker, from which the others fetch them."""
        # They are sent as the result of a task: if its worker dies, dask runs it again; scattered
        # data would be lost. Dask warns of large tasks, because there are usually many; this is
        # one.
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            return self.client.submit(_same, common, pure=False)

    def _hand_out(
        self,
        function: Callable[..., Any],
        first: Sequence[Future],
        waiting: Iterator[Any],
        running: int,
    ) -> list[Future]:
        """Submit as many tasks as keep every thread busy, also those of workers that have
        joined.
        """
        wanted = max(1, AHEAD * sum(self.client.nthreads().values())) - running
        return [
            self.client.submit(_on_worker, function, *first, task, pure=False)
            for task in islice(waiting, max(0, wanted))
        ]

    def _wait(self, future: Future) -> Any:
        from distributed import CancelledError
        from distributed.comm import CommClosedError
        from distributed.scheduler import KilledWorker

        with (
            refusing(
                KilledWorker,
                lambda error: (
                    f"the workers of one task died repeatedly (out of memory?): {error}"
                    "; give fewer --workers, each of them more memory, or a smaller --batch-size, and run again"
                ),
            ),
            refusing((CancelledError, CommClosedError), "the dask cluster went away; run again"),
        ):
            return future.result()


def _same(content: bytes) -> bytes:
    return content


def _on_worker(function: Callable[..., Result], *arguments: Any) -> Result:
    """Run a task on a worker, and tell it whether its result is still wanted."""
    # When a run is interrupted or dies, dask cancels its tasks, but cannot stop their threads.
    from distributed import get_worker

    here = get_worker()
    key = here.get_current_task()

    def wanted() -> bool:
        known = here.state.tasks.get(key)
        return known is not None and known.state == "executing"

    return function(*arguments, wanted)


def _in_folder(folder: Path, function: Callable[..., Result], *arguments: Any) -> Result:
    if not folder.is_dir():
        raise InputError(
            f"{folder}: no such folder there, though this run writes into it; all workers must see the "
            "same files under the same paths"
        )
    return function(*arguments)


def _said_where(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function; its InputError names the worker and its host."""
    from distributed import get_worker

    with refusing(
        InputError, lambda error: f"worker {get_worker().name} on {socket.gethostname()}: {error}"
    ):
        return function(*arguments)


@contextmanager
def local(
    workers: int,
    threads: int | None = None,
    on_start: Callable[[int], object] = lambda number: None,
) -> Iterator[DaskExecutor]:
    """Start worker processes on this machine; `on_start` is called in each with its number,
    from 0.
    """
    machine.refuse_processes(workers)
    import torch
    from distributed import Client, LocalCluster, WorkerPlugin

    each = threads or max(1, torch.get_num_threads() // workers)

    class Threads(WorkerPlugin):  # type: ignore[misc]
        """Prepares each worker's process, also one that replaces a process that died."""

        def setup(self, worker: Any) -> None:
            torch.set_num_threads(each)
            on_start(int(worker.name))
            with suppress(ValueError):  # not in a main thread
                signal.signal(
                    signal.SIGINT, signal.SIG_IGN
                )  # a terminal's Ctrl-C is for the run, which ends them

    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            # and a port of its own, where dask would warn of another run's
            silence_logs=logging.CRITICAL,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        ) as cluster,
        Client(cluster) as client,
    ):
        client.register_plugin(Threads())
        yield DaskExecutor(client, elsewhere=False)


@contextmanager
def running(address: str, timeout: float = 10) -> Iterator[DaskExecutor]:
    """Connect to a running cluster, whose workers must see the same files and have one thread
    each.
    """
    from distributed import Client

    with refusing(
        (OSError, ValueError), lambda error: f"no dask scheduler answers at {address}: {error}"
    ):
        client = Client(address, timeout=timeout)
    with client:
        with refusing(
            TimeoutError,
            f"the dask scheduler at {address} has no worker; start one: "
            f"dask worker {address} --nthreads 1",
        ):
            client.wait_for_workers(1, timeout=timeout)
        yield DaskExecutor(client, elsewhere=True)
