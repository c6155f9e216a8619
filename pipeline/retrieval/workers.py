"""Blocks of a matrix shared among threads, each of which computes and counts its own.

Threads that each take whole blocks do not wait for each other as those within one matrix product do: on two cores,
counting then hides behind the products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Generic, Protocol, TypeAlias, TypeVar

import torch

Block: TypeAlias = tuple[slice, slice]


class Worker(Protocol):
    """What one thread gathers from its blocks."""

    def add(self, rows: slice, columns: slice) -> None: ...


W = TypeVar("W", bound=Worker)


def share(blocks: Iterator[Block], make: Callable[[], W], finished: Callable[[int], None]) -> list[W]:
    """Hands the blocks, in order, to one worker for each of torch's threads; returns the workers when all are done.

    finished: told the cells of each block when it is done, by one thread at a time. Of the errors that workers raise
    that of the first block is raised, and no further blocks are begun.
    """
    threads = torch.get_num_threads()
    workers = [make() for _ in range(threads)]
    queue: _Queue[W] = _Queue(blocks, finished)
    if threads == 1:
        queue.serve(workers[0])
    else:
        _serve_in_threads(queue, workers)
    if queue.errors:
        raise queue.errors[min(queue.errors)]
    return workers


def _serve_in_threads(queue: _Queue[W], workers: list[W]) -> None:
    def serve(worker: W) -> None:
        torch.set_num_threads(1)
        queue.serve(worker)

    try:
        with ThreadPoolExecutor(len(workers)) as pool:
            try:
                for done in [pool.submit(serve, worker) for worker in workers]:
                    done.result()
            finally:
                queue.close()  # interrupted: the threads end after their block
    finally:
        torch.set_num_threads(len(workers))  # the number that a thread sets for itself is later threads' as well


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
