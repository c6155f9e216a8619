"""Several Python threads that share torch's threads: each runs whole short operations, where torch's own would meet
after every one of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Argument = TypeVar("Argument")
Result = TypeVar("Result")


class _Inside:
    """How many Python threads are inside `shared_out`, and how many torch had before the first of them."""

    lock = threading.Lock()
    count = 0
    before = 1


@contextmanager
def shared_out(parts: int | None = None) -> Iterator[int]:
    """Have torch run on its threads' share for each of `parts`, in threads started meanwhile too.

    Several Python threads may be inside at once: each leaves torch with what the first one found.

    Args:
        parts: into how many shares, of at least one thread; None: one thread for each.

    Yields:
        how many threads torch had before.
    """
    with _Inside.lock:
        if not _Inside.count:
            _Inside.before = torch.get_num_threads()
        _Inside.count += 1
        threads = _Inside.before
        torch.set_num_threads(max(1, threads // (parts or threads)))
    try:
        yield threads
    finally:
        with _Inside.lock:
            _Inside.count -= 1
            torch.set_num_threads(threads)


def for_another_thread(work: Callable[[Argument], Result]) -> Callable[[Argument], Result]:
    """The same work for another thread, where it gives the same bits.

    Gradient and inference modes belong to a thread, and a tensor of this thread's inference mode may be written there.
    So does the number of threads that products take, until torch's first own operation there.
    """
    inference, threads = torch.is_inference_mode_enabled(), torch.get_num_threads()

    def run(argument: Argument) -> Result:
        torch.set_num_threads(threads)
        with torch.inference_mode(inference), torch.no_grad():
            return work(argument)
    return run


def side_by_side(work: Callable[[Argument], Result], one: Argument, other: Argument) -> tuple[Result, Result]:
    """work(one) and work(other) at once, each on half of torch's threads; in turn where there is one thread.

    No gradients are tracked.
    """
    with shared_out(2) as threads:
        alone = for_another_thread(work)
        if threads == 1:
            return alone(one), alone(other)
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(alone, other)
            return alone(one), second.result()
