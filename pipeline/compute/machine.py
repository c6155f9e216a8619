"""The CPU of this machine, as the system names it."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

from pipeline.files.digest import digest


def processor() -> str:
    """Name the CPU.

    Returns:
        Its model name, or its architecture where the system does not give one.
    """
    return _first("model name") or platform.processor() or platform.machine()


def flags() -> str:
    """Tell CPUs of one name apart, as virtual machines have them, by the instructions that they offer."""
    return digest(_first("flags", "Features").split())[:8]


@cache
def _first(*names: str) -> str:
    """What the system says of the first core under one of these names, or nothing."""
    cores = Path("/proc/cpuinfo")
    lines = cores.read_text(encoding="utf-8", errors="replace").splitlines() if cores.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(names)), "")
