"""This machine: its CPU, its memory for large tensors, and whether other work runs on it."""

import ctypes
import os
import platform
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pipeline.foundation.files.digest import digest
from pipeline.foundation.parts.errors import InputError, counted


def processor() -> str:
    """Name the CPU's model, or its architecture where the system does not give one."""
    return _first("model name") or platform.processor() or platform.machine()


def flags() -> str:
    """Digest the instruction sets of the CPU. On virtual machines, different CPUs may have the same
    name.
    """
    return digest(_first("flags", "Features").split())[:8]


@cache
def _first(*names: str) -> str:
    """What the system says of the first core under one of these names, or nothing."""
    cores = Path("/proc/cpuinfo")
    if not cores.exists():
        return ""
    for line in cores.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith(names):
            return line.partition(":")[2].strip()
    return ""


# The most processes that are started for each core: enough for those that wait for files, and for
# tests on one core.
PROCESSES = 8


def refuse_processes(count: int) -> None:
    """Check that this machine can run so many processes at the same time: at most `PROCESSES` for
    each core.
    """
    cores = len(os.sched_getaffinity(0))
    if count > PROCESSES * cores:
        raise InputError(
            f"{count:,} processes are too many for this machine, which has {counted(cores, 'core')}; give "
            f"at most {PROCESSES * cores}"
        )


# Keep the memory of large tensors in the process, for training on a CPU.
LARGEST = 2**31 - 1
# Parameters of glibc's mallopt (malloc.h) and their values. A thread's own arena would still return
# its memory.
MALLOPT = {
    "M_MMAP_THRESHOLD": (-3, LARGEST),
    "M_TRIM_THRESHOLD": (-1, LARGEST),
    "M_ARENA_MAX": (-8, 1),
}
# With this variable torch asks Linux for pages of 2 MB for large tensors: a training step took a
# tenth less time. torch reads it once, for its first tensor.
HUGE_PAGES = "THP_MEM_ALLOC_ENABLE"


def keep_freed() -> bool:
    """Have the process keep the memory of deleted tensors for the next ones; whether it can (Linux
    with glibc).
    """
    # Each training step allocates the same hundreds of megabytes. glibc returns large blocks to the
    # system at once, and the system clears each page when it is used again, which takes a tenth of
    # a step. Threads that start later share one arena. Large pages are requested too, unless the
    # environment decides: call this before the first tensor.
    os.environ.setdefault(HUGE_PAGES, "1")
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return all(mallopt(*parameter) for parameter in MALLOPT.values())


# Whether other work ran on the machine while something was timed.
STATISTICS = Path("/proc/stat")
# Share of a needed core that other work may take.
TOLERATED = 0.1


@dataclass(frozen=True)
class Instant:
    """A reading of the clocks."""

    wall: float  # Seconds on the clock
    own: float  # Seconds of CPU time that this process has used
    # Seconds of CPU time that all processes have used, summed over cores; None where the system
    # does not say.
    busy: float | None


def now() -> Instant:
    """Read the clocks."""
    busy = None
    if STATISTICS.exists():
        ticks = [
            int(number)
            for number in STATISTICS.read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
        ]
        idle = ticks[3] + ticks[4]  # and waiting for disks
        busy = (sum(ticks) - idle) / os.sysconf("SC_CLK_TCK")
    return Instant(time.perf_counter(), time.process_time(), busy)


def others(start: Instant, end: Instant) -> float | None:
    """How many cores other processes used on average between two readings; None where the system
    does not say.
    """
    if start.busy is None or end.busy is None or end.wall <= start.wall:
        return None
    return max(0.0, ((end.busy - start.busy) - (end.own - start.own)) / (end.wall - start.wall))


def disturbed(used: float | None, threads: int) -> bool:
    """Whether other processes, which `used` so many cores, took some that the timed work's threads
    needed.
    """
    spare = max(0, (os.cpu_count() or 1) - threads)
    return used is not None and used > spare + TOLERATED * threads
