"""Large tensors in memory that the process keeps, for training on a CPU."""

from __future__ import annotations

import ctypes

MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1
"""Parameters of glibc's mallopt (malloc.h)."""
LARGEST = 2**31 - 1


def keep_freed() -> bool:
    """Have memory that tensors gave back stay with this process, for the next ones.

    A step of training asks for the same hundreds of megabytes again and again. glibc gives large pieces back to the
    system at once, and the system clears each page when it is touched anew: a tenth of a step's time. What a process
    holds at most does not grow.

    Returns:
        whether it is so now: on Linux with glibc.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(MMAP_THRESHOLD, LARGEST)) and bool(mallopt(TRIM_THRESHOLD, LARGEST))
