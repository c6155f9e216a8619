"""Blocks of a matrix shared among threads, each of which computes and counts its own blocks.

Threads that take whole blocks do not wait for each other, as the threads within one matrix product do. On two cores,
counting then takes no extra time.
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
    """What one thread computes from its blocks."""

    def add(self, rows: slice, columns: slice) -> None:
        """Process one block.

        Args:
            rows: Its rows.
            columns: Its columns.
        """
        ...


W = TypeVar("W", bound=Worker)


def threads() -> int:
    """Count the threads that compute: torch's number, or what it would be if torch were imported."""
    if "torch" in sys.modules:
        count: int = sys.modules["torch"].get_num_threads()
        return count
    given = os.environ.get("OMP_NUM_THREADS", "")
    return int(given) if given.isdigit() and int(given) else len(os.sched_getaffinity(0))


def _use(count: int) -> None:
    """Set how many threads each of torch's operations uses, if torch is imported."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(count)


def share(blocks: Iterator[Block], make: Callable[[], W], finished: Callable[[int], None]) -> list[W]:
    """Distribute blocks, in order, among one worker for each thread."""
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
    """The remaining blocks, and the errors by the number of their block."""

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
