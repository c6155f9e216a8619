"""Run extraction tasks on dask workers: local processes, or a cluster that is already running."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pipeline.errors import InputError
from pipeline.extraction import OnImages, Task, run

if TYPE_CHECKING:
    from distributed import Client

RETRIES = 3  # a shard whose worker died is tried again on another


def on_workers(client: Client) -> Callable[[list[Task], OnImages], None]:
    """A schedule for `extraction.extract` that hands each shard to one worker of `client`."""
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    def schedule(tasks: list[Task], on_images: OnImages) -> None:
        futures = [client.submit(run, task, pure=False, retries=RETRIES) for task in tasks]
        try:
            for future in as_completed(futures):
                on_images(future.result().images)
        except KilledWorker as error:
            raise InputError(f"a shard's workers died {RETRIES + 1} times (out of memory?): {error}; give fewer "
                             "--workers or a smaller --batch-size and run again to resume") from None
        finally:
            client.cancel(futures)

    return schedule


@contextmanager
def local(workers: int) -> Iterator[Client]:
    """`workers` processes on this machine, the cores shared out among them."""
    import torch
    from distributed import Client, LocalCluster

    threads = max(1, torch.get_num_threads() // workers)
    with (LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
          Client(cluster) as client):
        client.run(torch.set_num_threads, threads)
        yield client


@contextmanager
def running(address: str, timeout: float = 10) -> Iterator[Client]:
    """A cluster whose scheduler listens at `address`; its workers see the same files and have one thread each.

    timeout: seconds to wait for it. Raises InputError where none answers.
    """
    from distributed import Client

    try:
        client = Client(address, timeout=timeout)
    except (OSError, ValueError) as error:
        raise InputError(f"no dask scheduler answers at {address}: {error}") from None
    with client:
        yield client
