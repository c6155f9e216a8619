"""Time and memory of a step, ours beside another, in one run."""

from __future__ import annotations

import multiprocessing
import re
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from pipeline.foundation.compute import half
from pipeline.foundation.parts.errors import InputError

Step = Callable[[], Any]


def least_times(ours: Step, theirs: Step, repeats: int) -> tuple[float, float]:
    """The least of several times of each, in seconds, taken in turn after one of each to warm
    up.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats + 1):
        for step, taken in zip((ours, theirs), times, strict=True):
            start = time.perf_counter()
            step()
            taken.append(time.perf_counter() - start)
    return min(times[0][1:]), min(times[1][1:])


def precisions(device: str) -> tuple[str, ...]:
    """Those worth timing there: bfloat16 not on a CPU that is slower with it, which is said."""
    if (fastest := half.fastest(device)) == "fp32":
        print(
            f"bf16 is left out: this CPU multiplies {half.slowdown('bf16'):.3g} times slower with it",
            flush=True,
        )
    return tuple(dict.fromkeys(("fp32", fastest)))


def refuse_standard_input() -> None:
    """Raise InputError where the program was read from standard input: a started process runs its
    file again.
    """
    main = getattr(sys.modules["__main__"], "__file__", None)
    if main is not None and not Path(main).is_file():
        raise InputError(
            "a benchmark starts processes, which need the program's file, and standard input is none; "
            "run `python -m benchmarks.NAME`, or save the program to a file"
        )


def new_process(
    initializer: Callable[..., object] | None = None, *arguments: Any
) -> ProcessPoolExecutor:
    """A process for one task after another. Where it cannot start, that is an error; a Pool would
    start it for ever.
    """
    refuse_standard_input()
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer, arguments)


def least_times_apart(
    make: Callable[..., Step], variants: Sequence[tuple[Any, ...]], repeats: int
) -> list[float]:
    """The least of several times of the step of ``make(*variant)``, in seconds, each variant in a
    process of its own.

    They are taken in turn, after two of each to warm up: one process computes at a time.
    """
    times: list[list[float]] = [[] for _ in variants]
    with ExitStack() as stack:
        processes = [stack.enter_context(new_process(_keep, make, variant)) for variant in variants]
        for _ in range(repeats + 2):
            for one, taken in zip(processes, times, strict=True):
                taken.append(one.submit(_timed).result())
    return [min(taken[2:]) for taken in times]


_kept: list[Step] = []


def _keep(make: Callable[..., Step], arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(2)
    _kept.append(make(*arguments))


def _timed() -> float:
    start = time.perf_counter()
    _kept[0]()
    return time.perf_counter() - start


def peak_memory(make: Callable[..., Step], *arguments: Any) -> int:
    """Bytes by which a process of its own grows at most in the step of ``make(*arguments)`` (on
    Linux).
    """
    with new_process() as one:
        return one.submit(_growth, make, arguments).result()


def _growth(make: Callable[..., Step], arguments: tuple[Any, ...]) -> int:
    torch.set_num_threads(2)
    step = make(*arguments)
    # Forget the peak of the imports: "5" resets the high-water mark (proc_pid_clear_refs(5)).
    Path("/proc/self/clear_refs").write_text("5")
    before = high_water_mark()
    step()
    return high_water_mark() - before


def high_water_mark() -> int:
    """The most memory that this process has held, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


REPORTED = (
    ("", ""),
    ("ours, ms", ",.1f"),
    ("released, ms", ",.1f"),
    ("times faster", ".1f"),
    ("ours, MiB", ",.1f"),
    ("released, MiB", ",.1f"),
    ("times less", ".1f"),
)
"""The columns of what `report` returns, see `numbers.Columns`."""


def report(name: str, seconds: tuple[float, float], growth: tuple[int, int]) -> list[str | float]:
    """Print one line, and return its values: ours, theirs and their ratio, in time and memory."""
    (ours, theirs), (our_growth, their_growth) = seconds, growth
    print(
        f"{name:62} {ours * 1e3:8.1f} ms  released {theirs * 1e3:8.1f} ms  {theirs / ours:6.1f} × faster   "
        f"{our_growth / 2**20:7.1f} MiB  released {their_growth / 2**20:7.1f} MiB  "
        f"{their_growth / max(our_growth, 1):6.1f} × less",
        flush=True,
    )
    return [
        name,
        ours * 1e3,
        theirs * 1e3,
        theirs / ours,
        our_growth / 2**20,
        their_growth / 2**20,
        their_growth / max(our_growth, 1),
    ]


RATIOS = (("", ""), ("ms", ",.1f"), ("ratio", ",.2f"))
"""The columns of what `report_ratios` returns."""


def report_ratios(times: dict[str, float], beside: str) -> list[list[str | float]]:
    """Print a line for each, in milliseconds, and as so many times the one named `beside`; return
    their values.
    """
    for name, taken in times.items():
        print(
            f"  {name:14} {taken * 1e3:9.1f} ms   {taken / times[beside]:7.2f} × {beside}",
            flush=True,
        )
    return [[name, taken * 1e3, taken / times[beside]] for name, taken in times.items()]
