"""The machine and libraries that made a result, recorded beside it as `made_with` and never compared."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

from pipeline.files.digest import digest


def record() -> dict[str, str | int]:
    """Describe the machine as this process uses it now.

    Returns:
        torch: its version. processor: the CPU's model name. threads: how many torch uses. products: how float32
        matrices are multiplied (`products.Kind`).
    """
    import torch  # where nothing is computed, it takes seconds for nothing

    from pipeline.compute import products

    return {"torch": torch.__version__, "processor": processor(), "threads": torch.get_num_threads(),
            "products": products.current()}


def processor() -> str:
    """Name the CPU.

    Returns:
        Its model name, or its architecture where the system does not give one.
    """
    return _first("model name") or platform.processor() or platform.machine()


def flags() -> str:
    """Tell CPUs of one name apart, as virtual machines have them, by the instructions that they offer.

    Returns:
        Eight hexadecimal digits of the digest of the CPU's flags.
    """
    return digest(_first("flags", "Features").split())[:8]


@cache
def _first(*names: str) -> str:
    """What the system says of the first core under one of these names, or nothing."""
    cores = Path("/proc/cpuinfo")
    lines = cores.read_text(encoding="utf-8", errors="replace").splitlines() if cores.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(names)), "")
