"""Choose how the CPU multiplies float32 matrices: torch's default, or oneDNN where a probe finds it better.

torch sends float32 products to MKL, which runs at less than half speed on AMD CPUs. torch's switch for reduced
precision sends them to oneDNN instead. On CPUs with AMX oneDNN then rounds the factors to bfloat16, which is not
wanted; on others it computes in float32. Both speed and error are therefore measured before the switch is used.
"""

from dataclasses import dataclass
from typing import Literal

import torch

from pipeline.compute import attention, measured, onednn
from pipeline.compute.measured import least_seconds

Setting = Literal["auto", "default"]
Kind = Literal["onednn", "default"]

SHAPE = (256, 512, 256)
"""Of the product that is probed: rows, the length of the sums, columns."""
CHECKED = 32
"""Rows of the product that are compared with float64."""
FASTER = 1.2
"""oneDNN is used where it is faster by this factor."""
LARGEST_ERROR = 3e-6
"""And where its root mean square error, relative to that of the products, is below this. Float32 gives 2e-7 to 6e-7,
factors rounded to bfloat16 2e-3."""


@dataclass(frozen=True)
class Products:
    """The choice, and the measurements it rests on."""

    kind: Kind  # "onednn", or "default" for torch's own choice
    faster: float | None = None  # time of the default divided by time of oneDNN; None where nothing was measured
    error: float | None = None  # relative root mean square error of oneDNN; None where nothing was measured


def apply(setting: Setting = "auto") -> Products:
    """Choose how this process multiplies float32 matrices on the CPU from now on.

    Attention keeps torch's own products (`attention`).

    Args:
        setting: "auto" takes what `probe` finds better; "default" leaves products to torch.

    Returns:
        What was chosen.
    """
    chosen = probe() if setting == "auto" else Products("default")
    use(chosen.kind)
    return chosen


def probe() -> Products:
    """Measure both ways on one thread, once a machine (`measured`).

    Returns:
        The better one, with the measurements.
    """
    if not onednn.has_switch():
        return Products("default")
    return choose(measured.once("oneDNN faster", _faster), measured.once("oneDNN error", _error))


def _faster() -> float:
    factors = _factors()
    default, other = least_seconds(lambda: _product("default", *factors), lambda: _product("onednn", *factors))
    return default / other


def _error() -> float:
    left, right = _factors()
    exact = left[:CHECKED].double() @ right.double()
    found = _product("onednn", left, right)[:CHECKED]
    return float((found - exact).square().mean().sqrt() / exact.square().mean().sqrt())


def _factors() -> tuple[torch.Tensor, torch.Tensor]:
    rows, inner, columns = SHAPE
    draws = torch.Generator().manual_seed(0)
    return torch.randn(rows, inner, generator=draws), torch.randn(inner, columns, generator=draws)


def _product(kind: Kind, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Multiply in one way, and leave the switch as it was."""
    before = current()
    use(kind)
    try:
        return left @ right
    finally:
        use(before)


def choose(faster: float, error: float) -> Products:
    """Choose oneDNN where it is faster and as accurate as float32."""
    return Products("onednn" if faster >= FASTER and error < LARGEST_ERROR else "default", faster, error)


def use(kind: Kind) -> None:
    """Multiply float32 matrices in this way from now on, in all threads of this process.

    Args:
        kind: "onednn" or "default".
    """
    if kind == "onednn":
        attention.keep_own_products()
        onednn.turn(True)
    elif onednn.is_on():
        onednn.turn(False)


def current() -> Kind:
    """Say how this process multiplies now.

    Returns:
        "onednn" or "default".
    """
    return "onednn" if onednn.is_on() else "default"
