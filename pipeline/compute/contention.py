"""Whether other work ran on the machine while something was timed."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

STATISTICS = Path("/proc/stat")
TOLERATED = 0.1
"""Share of a needed core that other work may take."""


@dataclass(frozen=True)
class Instant:
    """A reading of the clocks.

    Attributes:
        wall: Seconds on the clock.
        own: Seconds of CPU time that this process has used.
        busy: Seconds of CPU time that all processes have used, summed over cores; None where the system does not say.
    """

    wall: float
    own: float
    busy: float | None


def now() -> Instant:
    """Read the clocks.

    Returns:
        The reading.
    """
    busy = None
    if STATISTICS.exists():
        ticks = [int(number) for number in STATISTICS.read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
        idle = ticks[3] + ticks[4]  # and waiting for disks
        busy = (sum(ticks) - idle) / os.sysconf("SC_CLK_TCK")
    return Instant(time.perf_counter(), time.process_time(), busy)


def others(start: Instant, end: Instant) -> float | None:
    """How many cores other processes used.

    Args:
        start: The reading before.
        end: The reading after.

    Returns:
        The mean number of cores, None where the system does not say.
    """
    if start.busy is None or end.busy is None or end.wall <= start.wall:
        return None
    return max(0.0, ((end.busy - start.busy) - (end.own - start.own)) / (end.wall - start.wall))


def disturbed(used: float | None, threads: int) -> bool:
    """Whether other work took cores that were needed.

    Args:
        used: What `others` returned.
        threads: The number of cores that the timed work could use.

    Returns:
        True if other processes used more than the cores left over.
    """
    spare = max(0, (os.cpu_count() or 1) - threads)
    return used is not None and used > spare + TOLERATED * threads
