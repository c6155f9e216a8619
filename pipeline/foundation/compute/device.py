"""The devices and precisions in which networks compute."""

import torch

from pipeline.foundation.parts.errors import InputError

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def require(name: str) -> torch.device:
    """Find the torch device of a name; InputError if it is not available, or computes only shapes,
    as `meta` does.
    """
    try:
        device = torch.empty(0, device=name).device
    except (RuntimeError, AssertionError):
        device = torch.device("meta")
    if device.type == "meta":
        known = "cpu"
        if torch.cuda.is_available():
            known = "cpu or cuda"
        raise InputError(f"device {name!r} is not available; use {known}")
    return device


def autocast(device: str, precision: str) -> torch.autocast:
    """Compute in a precision on a device inside the block that this opens."""
    return torch.autocast(
        torch.device(device).type, PRECISIONS[precision], enabled=precision != "fp32"
    )
