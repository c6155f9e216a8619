"""Compare the time of two short calculations."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

REPEATS = 4
"""Times that each is taken at least, and"""
SECONDS = 0.3
"""for so long in all: the least of a few times differs by a factor of two beside other work, of hundreds by 5 %."""


def least_seconds(first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float]:
    """Measure the least processor time of two calculations, called in turn, after one call of each to warm up.

    Both run on one thread and are timed by that thread's processor time, so that other work on the machine has little
    influence.
    """
    times: tuple[list[float], list[float]] = ([], [])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        begun = time.thread_time()
        while len(times[0]) <= REPEATS or time.thread_time() - begun < SECONDS:
            for calculate, taken in zip((first, second), times, strict=True):
                start = time.thread_time()
                calculate()
                taken.append(time.thread_time() - start)
    finally:
        torch.set_num_threads(threads)
    return min(times[0][1:]), min(times[1][1:])
