"""Blocks of a matrix shared among threads, each of which computes and counts its own.

Threads that each take whole blocks do not wait for each other as those within one matrix product do: on two cores,
counting then hides behind the products.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Generic, Protocol, TypeAlias, TypeVar

Block: TypeAlias = tuple[slice, slice]


class Worker(Protocol):
    """What one thread gathers from its blocks."""

    def add(self, rows: slice, columns: slice) -> None: ...


W = TypeVar("W", bound=Worker)


def threads() -> int:
    """How many threads compute: as many as torch has, or would have where it is not imported."""
    if "torch" in sys.modules:
        count: int = sys.modules["torch"].get_num_threads()
        return count
    given = os.environ.get("OMP_NUM_THREADS", "")
    return int(given) if given.isdigit() and int(given) else len(os.sched_getaffinity(0))


def _use(count: int) -> None:
    """Let each of torch's operations have so many threads; one that is not imported computes nothing."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(count)


def share(blocks: Iterator[Block], make: Callable[[], W], finished: Callable[[int], None]) -> list[W]:
    """Hands the blocks, in order, to one worker for each thread; returns the workers when all are done.

    finished: told the cells of each block when it is done, by one thread at a time. Of the errors that workers raise
    that of the first block is raised, and no further blocks are begun.
    """
    workers = [make() for _ in range(threads())]
    queue: _Queue[W] = _Queue(blocks, finished)
    if len(workers) == 1:
        queue.serve(workers[0])
    else:
        _serve_in_threads(queue, workers)
    if queue.errors:
        raise queue.errors[min(queue.errors)]
    return workers


def _serve_in_threads(queue: _Queue[W], workers: list[W]) -> None:
    def serve(worker: W) -> None:
        _use(1)
        queue.serve(worker)

    try:
        with ThreadPoolExecutor(len(workers)) as pool:
            try:
                for done in [pool.submit(serve, worker) for worker in workers]:
                    done.result()
            finally:
                queue.close()  # interrupted: the threads end after their block
    finally:
        _use(len(workers))  # the number that a thread sets for itself is later threads' as well


class _Queue(Generic[W]):
    """The blocks that are left, and what went wrong, by the number of the block."""

    def __init__(self, blocks: Iterator[Block], finished: Callable[[int], None]) -> None:
        self.blocks, self.finished, self.lock = enumerate(blocks), finished, Lock()
        self.errors: dict[int, Exception] = {}
        self.closed = False

    def close(self) -> None:
        self.closed = True

    def serve(self, worker: W) -> None:
        while not self.closed:
            with self.lock:
                number, block = next(self.blocks, (-1, None))
            if block is None:
                return
            rows, columns = block
            try:
                worker.add(rows, columns)
                with self.lock:
                    self.finished((rows.stop - rows.start) * (columns.stop - columns.start))
            except Exception as error:  # raised again by the caller's thread
                with self.lock:
                    self.errors[number] = error
                self.close()
