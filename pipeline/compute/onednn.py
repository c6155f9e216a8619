"""torch's switch that sends float32 matrix products on the CPU to oneDNN. It holds for all threads of a process."""

from typing import Any

import torch


def has_switch() -> bool:
    """Check this torch: it needs oneDNN, the switch (torch 2.9) and access to its kernels (2.10, for `attention`)."""
    return (torch.backends.mkldnn.is_available() and hasattr(torch.backends.mkldnn, "matmul")
            and hasattr(torch.library, "get_kernel"))


def is_on() -> bool:
    """Read the switch."""
    return has_switch() and _of_products().fp32_precision == "bf16"


def turn(on: bool) -> None:
    """Set the switch."""
    _of_products().fp32_precision = "bf16" if on else "ieee"


def _of_products() -> Any:
    # Not torch.set_float32_matmul_precision("medium"), which also allows TF32 on a GPU.
    return torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
