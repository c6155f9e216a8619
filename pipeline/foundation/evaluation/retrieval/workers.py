"""Blocks of a matrix shared among threads, each of which computes and counts its own, or among
workers of a cluster.

Threads that take whole blocks do not wait for each other, as the threads within one matrix product
do. On two cores, counting then takes no extra time.
"""

import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from contextvars import ContextVar
from copy import copy
from threading import Event, Lock
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from pipeline.foundation import compute
from pipeline.foundation.evaluation.retrieval.blocks import Ids

if TYPE_CHECKING:
    from pipeline.foundation.compute.tasks import Executor, Wanted

Block: TypeAlias = tuple[slice, slice]
Progress: TypeAlias = Callable[[int], object]


class Worker(Protocol):
    """What one thread computes from its blocks."""

    def add(self, rows: slice, columns: slice) -> None:
        """Process the block of these rows and columns."""


W = TypeVar("W", bound=Worker)
# A task's result: cells counted, and of each array the position of its first value above 0 and the
# values to the last.
Part: TypeAlias = tuple[int, list[tuple[int, Ids]]]
# Cells of the blocks that a task of a cluster counts: some seconds of work. Its counts are a few
# bytes an item.
CELLS_A_TASK = 500_000_000
_place: "ContextVar[Executor | None]" = ContextVar("place", default=None)


class Counter(Worker):
    """Counts blocks into int64 arrays; the arrays of several counters, each with blocks of its own,
    are added.
    """

    lengths: tuple[int, ...]  # of the arrays
    counts: tuple[Ids, ...]  # the arrays, once `fresh` has made them

    def fresh(self) -> Self:
        """Make a copy with empty counts."""
        other = copy(self)
        other.counts = tuple(np.zeros(length, np.int64) for length in self.lengths)
        return other


@contextmanager
def counted_on(place: "Executor | None") -> Iterator[None]:
    """Have `count` send blocks to the workers of a cluster; None for the threads of this
    process.
    """
    before = _place.set(place)
    try:
        yield
    finally:
        _place.reset(before)


def count(blocks: Iterator[Block], counter: Counter, finished: Progress) -> tuple[Ids, ...]:
    """Count blocks here, or where `counted_on` says if all that they are read from is in files."""
    place = _place.get()
    content = None
    if place is not None:
        content = compute.by_path.packed(counter)
    if place is None or content is None:
        counters = share(blocks, counter.fresh, finished)
        return tuple(_totals(counters))
    totals = counter.fresh().counts
    with closing(place.each(_count_part, _parts(blocks), common=content)) as parts:
        for cells, counted in parts:
            for total, (first, values) in zip(totals, counted, strict=True):
                total[first : first + len(values)] += values
            finished(cells)
    return totals


def _totals(counters: Iterable[Counter]) -> list[Ids]:
    counts = [counter.counts for counter in counters]
    return [np.sum(arrays, axis=0) for arrays in zip(*counts, strict=True)]


def _parts(blocks: Iterable[Block]) -> Generator[list[Block], None, None]:
    part = []
    cells = 0
    for rows, columns in blocks:
        part.append((rows, columns))
        cells += (rows.stop - rows.start) * (columns.stop - columns.start)
        if cells >= CELLS_A_TASK:
            yield part
            part = []
            cells = 0
    if part:
        yield part


def _count_part(content: bytes, blocks: list[Block], wanted: "Wanted") -> Part:
    counter: Counter = compute.by_path.unpacked(content)
    done: list[int] = []
    counters = share(iter(blocks), counter.fresh, done.append)
    return sum(done), [_trimmed(total) for total in _totals(counters)]


def _trimmed(total: Ids) -> tuple[int, Ids]:
    above_zero = np.flatnonzero(total)
    first = 0
    last = 0
    if len(above_zero):
        first = int(above_zero[0])
        last = int(above_zero[-1]) + 1
    smallest = np.min_scalar_type(int(total.max(initial=0)))
    return first, total[first:last].astype(smallest)


def threads() -> int:
    """Count the threads that compute: torch's number, or what it would be if torch were
    imported.
    """
    if "torch" in sys.modules:
        count: int = sys.modules["torch"].get_num_threads()
        return count
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdigit() and int(given):
        return int(given)
    return len(os.sched_getaffinity(0))


def _use(count: int) -> None:
    """Set how many threads each of torch's operations uses, if torch is imported."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(count)


def share(blocks: Iterator[Block], make: Callable[[], W], finished: Progress) -> list[W]:
    """Distribute blocks, in order, among one worker a thread, and raise the error of the first
    block with one.
    """
    workers = [make() for _ in range(threads())]
    waiting = enumerate(blocks)
    lock = Lock()
    stopped = Event()
    errors: dict[int, Exception] = {}

    def serve(worker: W) -> None:
        while not stopped.is_set():
            with lock:
                number, block = next(waiting, (-1, None))
            if block is None:
                return
            rows, columns = block
            cells = (rows.stop - rows.start) * (columns.stop - columns.start)
            try:
                worker.add(rows, columns)
                with lock:
                    finished(cells)
            except Exception as error:  # raised again by the caller's thread
                with lock:
                    errors[number] = error
                stopped.set()

    if len(workers) == 1:
        serve(workers[0])
    else:
        _serve_all(workers, serve, stopped)
    if errors:
        raise errors[min(errors)]
    return workers


def _serve_all(workers: Sequence[W], serve: Callable[[W], None], stopped: Event) -> None:
    """Give each worker a thread, in which products are computed by one thread alone."""
    from threadpoolctl import threadpool_limits

    try:
        with (
            threadpool_limits(1, user_api="blas"),  # numpy's products
            ThreadPoolExecutor(len(workers), initializer=_use, initargs=(1,)) as pool,
        ):
            try:
                list(pool.map(serve, workers))
            finally:
                stopped.set()  # interrupted: the threads end after their block
    finally:
        _use(len(workers))  # torch gives a number that one thread sets to later threads, too


def after(progress: Progress, before: int) -> Progress:
    """Report progress of a part that begins when `before` is done already."""
    return lambda done: progress(before + done)


def in_items(progress: Progress | None, items: int, cells: int) -> Progress:
    """Convert numbers of finished cells, of `cells` in all, to a number of finished items such as
    rows.
    """
    done = 0

    def finished(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done * items // cells)

    return finished
