"""Python threads that share torch's threads among them.

Each Python thread runs many short operations on its own; torch's threads would synchronise after
each one. The results are the same to the bit, no matter which thread computes them.
"""

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from typing import TypeVar

import torch

from pipeline.foundation.compute import fast_paths

Argument = TypeVar("Argument")
Result = TypeVar("Result")
# Work that another thread may help with. The reference is weak, so that finished work frees its
# memory.
Offer = weakref.ref[Callable[[], None]]


class _Inside:
    """How many Python threads are inside `shared_out`, and how many torch had before the first of
    them.
    """

    lock = threading.Lock()
    count = 0
    before = 1


class _Share(threading.local):
    """What this Python thread was given by `side_by_side`; None: nothing."""

    threads: int | None = None  # how many of torch's threads
    offers: SimpleQueue[Offer | None] | None = (
        None  # where it offers work to the one of the two that finishes first
    )


_share = _Share()


@contextmanager
def shared_out(parts: int | None = None) -> Iterator[int]:
    """Share torch's threads among several Python threads, also those started inside; yields torch's
    number.

    Several Python threads may be inside at once. The first one's number of threads is restored at
    the end. A thread that `side_by_side` gave a share divides that share. parts: the number of
    shares; None for one thread each.
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
    """Wrap a function so that another thread computes the same bits."""
    # Gradient mode, inference mode and the number of threads belong to a thread in torch. The
    # wrapper sets them as they are in the thread that calls this function.
    inference, gradients, threads = (
        torch.is_inference_mode_enabled(),
        torch.is_grad_enabled(),
        torch.get_num_threads(),
    )

    def run(argument: Argument) -> Result:
        torch.set_num_threads(threads)
        with torch.inference_mode(inference), torch.set_grad_enabled(gradients):
            return work(argument)

    return run


def each(
    work: Callable[[Argument], Result], arguments: Iterable[Argument], at_once: int | None = None
) -> list[Result]:
    """Apply a function to many arguments, several at once, and keep their order; idle halves of
    `side_by_side` help.

    at_once: each gets an equal share of torch's threads; None for as many as torch has threads.
    """
    if not fast_paths.are_on():
        return [work(argument) for argument in arguments]
    with shared_out(at_once) as threads:
        alone = for_another_thread(work)
        tasks: list[tuple[Future[Result], Argument]] = [
            (Future(), argument) for argument in arguments
        ]
        todo = iter(tasks)

        def work_off() -> None:
            for result, argument in todo:  # several threads share this iterator
                try:
                    result.set_result(alone(argument))
                except BaseException as error:
                    result.set_exception(error)

        if _share.offers is not None:
            _share.offers.put(weakref.ref(work_off))
        further = min(at_once or threads, threads, len(tasks)) - 1
        with ThreadPoolExecutor(max(1, further)) as pool:
            for _ in range(further):
                pool.submit(work_off)
            work_off()
            return [result.result() for result, _ in tasks]


def _help(offers: SimpleQueue[Offer | None]) -> None:
    """Do offered work until None comes."""
    for offer in iter(offers.get, None):
        work_off = offer()
        if work_off is not None:
            work_off()
        del work_off


def side_by_side(
    work: Callable[[Argument], Result], one: Argument, other: Argument
) -> tuple[Result, Result]:
    """Apply a function to two arguments at once, each on half of torch's threads; if torch has one,
    in sequence.
    """
    if not fast_paths.are_on():
        return work(one), work(other)
    with shared_out(2) as threads:
        if threads == 1:
            first, second = each(work, (one, other), 2)
            return first, second
        alone = for_another_thread(work)
        last = iter((False, True))
        offers: SimpleQueue[Offer | None] = SimpleQueue()

        def on_its_share(argument: Argument) -> Result:
            before = _share.threads, _share.offers
            _share.threads = max(1, threads // 2)
            _share.offers = offers
            try:
                return alone(argument)
            finally:
                if next(last):
                    offers.put(None)
                else:
                    _help(offers)
                _share.threads, _share.offers = before

        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(on_its_share, other)
            return on_its_share(one), result.result()
