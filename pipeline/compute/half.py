"""Whether half precision pays on this CPU."""

import torch

from pipeline.compute import measured
from pipeline.compute.device import PRECISIONS
from pipeline.parts.errors import InputError

# The side of the square product that is probed.
SIDE = 256


def refuse_slow(precision: str, device: str) -> None:
    """Refuse half precision on a CPU that is slower with it than with float32.

    A CPU without instructions for it is 44 to 499 times slower (pytorch issue 146508).

    Args:
        precision: "fp32", "bf16" or "fp16".
        device: A torch device. Only a CPU is measured, once per machine (`measured`).

    Raises:
        InputError: If half precision is slower; the message has the measured factor.
    """
    if precision != "fp32" and device == "cpu" and (slower := slowdown(precision)) > 1:
        raise InputError(f"precision {precision}: this CPU multiplies {slower:.3g} times slower with it than with "
                         "fp32; use fp32 here, or a GPU, or bf16 on a CPU where `pipeline machine` finds it faster")


def fastest(device: str) -> str:
    """Choose the fastest precision for a network whose results need not be exact.

    Args:
        device: A torch device.

    Returns:
        "bf16" on a GPU, and on a CPU that multiplies faster with it; else "fp32".
    """
    return "bf16" if device != "cpu" or slowdown("bf16") < 1 else "fp32"


def slowdown(precision: str) -> float:
    """Measure how much slower a product is in half precision than in float32, on one thread, once per machine.

    Args:
        precision: "bf16" or "fp16".

    Returns:
        The time in half precision divided by the time in float32.
    """
    def measure() -> float:
        left, right = torch.randn(2, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
        short = left.to(PRECISIONS[precision]), right.to(PRECISIONS[precision])
        half, single = measured.least_seconds(lambda: short[0] @ short[1], lambda: left @ right)
        return half / single

    return measured.once(f"{precision} slower", measure)
