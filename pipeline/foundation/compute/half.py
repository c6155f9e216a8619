"""Whether half precision pays on this CPU."""

import torch

from pipeline.foundation.compute import measured
from pipeline.foundation.compute.device import PRECISIONS
from pipeline.foundation.parts.errors import InputError

# The side of the square product that is probed.
SIDE = 256


def refuse_slow(precision: str, device: str) -> None:
    """Refuse half precision on a CPU that is slower with it than with float32, as `slowdown`
    measures.
    """
    # A CPU without instructions for it is 44 to 499 times slower (pytorch issue 146508).
    if precision == "fp32" or device != "cpu":
        return
    slower = slowdown(precision)
    if slower > 1:
        raise InputError(
            f"precision {precision}: this CPU multiplies {slower:.3g} times slower with it than with "
            "fp32; use fp32 here, or a GPU, or bf16 on a CPU where `pipeline lab machine` finds it faster"
        )


def fastest(device: str) -> str:
    """Choose the precision of a network that need not be exact: bf16 on a GPU or a CPU faster with
    it, else fp32.
    """
    return "bf16" if device != "cpu" or slowdown("bf16") < 1 else "fp32"


def slowdown(precision: str) -> float:
    """The time of a product in half precision divided by that in float32, on one thread, measured
    once per machine.
    """

    def measure() -> float:
        left, right = torch.randn(2, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
        short = left.to(PRECISIONS[precision]), right.to(PRECISIONS[precision])
        half, single = measured.least_seconds(lambda: short[0] @ short[1], lambda: left @ right)
        return half / single

    return measured.once(f"{precision} slower", measure)
