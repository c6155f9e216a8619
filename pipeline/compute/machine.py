"""What made a result besides its inputs and settings. Recorded beside it, never compared."""

from __future__ import annotations

import platform
from pathlib import Path

import torch

from pipeline.compute import products


def record() -> dict[str, str | int]:
    """The machine as it computes now, for "made_with" in head.json and in stores.

    Returns:
        torch: its version. cpu: the CPU's model name. threads: how many torch uses. products: how float32 matrices are
        multiplied (`products`).
    """
    return {"torch": torch.__version__, "cpu": cpu(), "threads": torch.get_num_threads(),
            "products": products.current()}


def cpu() -> str:
    """The CPU's model name, as the system gives it; its architecture where that is not known."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()
