"""Seconds of a step."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch


def seconds(step: Callable[[], object], device: str, repeats: int, at_least: float) -> float:
    """The least over `repeats` runs of a step, or as many as fit into `at_least` seconds if that is more.

    The least is what other work on the machine disturbs least. One run before them warms up. On a GPU a run ends when
    the device is idle.
    """
    taken: list[float] = []
    step()
    while len(taken) < repeats or sum(taken) < at_least:
        _wait(device)
        start = time.perf_counter()
        step()
        _wait(device)
        taken.append(time.perf_counter() - start)
    return min(taken)


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)
