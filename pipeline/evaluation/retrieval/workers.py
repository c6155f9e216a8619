"""Blocks of a matrix shared among threads, each of which computes and counts its own blocks.

Threads that take whole blocks do not wait for each other, as the threads within one matrix product do. On two cores,
counting then takes no extra time.
"""

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from typing import Protocol, TypeAlias, TypeVar

Block: TypeAlias = tuple[slice, slice]
Progress: TypeAlias = Callable[[int], object]


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


def share(blocks: Iterator[Block], make: Callable[[], W], finished: Progress) -> list[W]:
    """Distribute blocks, in order, among one worker for each thread, and raise the error of the first block with one.

    After each block `finished` is called with its number of cells.
    """
    workers = [make() for _ in range(threads())]
    waiting, lock, stopped = enumerate(blocks), Lock(), Event()
    errors: dict[int, Exception] = {}

    def serve(worker: W) -> None:
        while not stopped.is_set():
            with lock:
                number, block = next(waiting, (-1, None))
            if block is None:
                return
            rows, columns = block
            try:
                worker.add(rows, columns)
                with lock:
                    finished((rows.stop - rows.start) * (columns.stop - columns.start))
            except Exception as error:  # raised again by the caller's thread
                with lock:
                    errors[number] = error
                stopped.set()

    if len(workers) == 1:
        serve(workers[0])
    else:
        try:
            with ThreadPoolExecutor(len(workers), initializer=_use, initargs=(1,)) as pool:
                try:
                    list(pool.map(serve, workers))
                finally:
                    stopped.set()  # interrupted: the threads end after their block
        finally:
            _use(len(workers))  # the number that a thread sets for itself is later threads' as well
    if errors:
        raise errors[min(errors)]
    return workers


def in_items(progress: Progress | None, items: int, cells: int) -> Progress:
    """Tell progress in finished items, such as rows, of blocks in any order that have `cells` in all."""
    done = 0

    def finished(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done * items // cells)

    return finished
