"""Compare the time of two short calculations."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

REPEATS = 4


def least_seconds(first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float]:
    """Measure the least processor time of two calculations, called in turn, after one call of each to warm up.

    Both run on one thread and are timed by that thread's processor time, so that other work on the machine has little
    influence.

    Args:
        first: A calculation.
        second: Another one.

    Returns:
        The least seconds of each.
    """
    times: tuple[list[float], list[float]] = ([], [])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for _ in range(REPEATS + 1):
            for calculate, taken in zip((first, second), times, strict=True):
                start = time.thread_time()
                calculate()
                taken.append(time.thread_time() - start)
    finally:
        torch.set_num_threads(threads)
    return min(times[0][1:]), min(times[1][1:])
