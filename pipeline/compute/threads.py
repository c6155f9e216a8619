"""Python threads that share torch's threads among them.

Each Python thread runs many short operations on its own; torch's threads would synchronise after each one.
"""

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


class _Share(threading.local):
    """How many of torch's threads this Python thread was given by `side_by_side`; None: it was given none."""

    threads: int | None = None


_share = _Share()


@contextmanager
def shared_out(parts: int | None = None) -> Iterator[int]:
    """Give each of several Python threads a share of torch's threads, also those started inside.

    Several Python threads may be inside at once. The first one's number of threads is restored at the end. A thread
    that `side_by_side` gave a share divides that share.

    Args:
        parts: The number of shares, each of at least one thread; None: one thread for each.

    Yields:
        The number of threads that torch had before.
    """
    with _Inside.lock:
        if not _Inside.count:
            _Inside.before = torch.get_num_threads()
        _Inside.count += 1
        threads = _share.threads or _Inside.before
        torch.set_num_threads(max(1, threads // (parts or threads)))
    try:
        yield threads
    finally:
        with _Inside.lock:
            _Inside.count -= 1
            torch.set_num_threads(threads)


def for_another_thread(work: Callable[[Argument], Result]) -> Callable[[Argument], Result]:
    """Wrap a function so that another thread computes the same bits.

    Gradient mode, inference mode and the number of threads belong to a thread in torch. The wrapper sets them as they
    are in the thread that calls this function.

    Args:
        work: A function of one argument.

    Returns:
        The wrapped function.
    """
    inference, gradients, threads = torch.is_inference_mode_enabled(), torch.is_grad_enabled(), torch.get_num_threads()

    def run(argument: Argument) -> Result:
        torch.set_num_threads(threads)
        with torch.inference_mode(inference), torch.set_grad_enabled(gradients):
            return work(argument)
    return run


def side_by_side(work: Callable[[Argument], Result], one: Argument, other: Argument) -> tuple[Result, Result]:
    """Apply a function to two arguments at once, each on half of torch's threads; in sequence on one thread.

    Args:
        work: A function of one argument.
        one: The first argument.
        other: The second argument.

    Returns:
        Both results.
    """
    with shared_out(2) as threads:
        alone = for_another_thread(work)
        if threads == 1:
            return alone(one), alone(other)

        def on_its_share(argument: Argument) -> Result:
            before, _share.threads = _share.threads, max(1, threads // 2)
            try:
                return alone(argument)
            finally:
                _share.threads = before

        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(on_its_share, other)
            return on_its_share(one), second.result()
