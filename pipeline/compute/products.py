"""Choose how the CPU multiplies float32 matrices: torch's default, or oneDNN where a probe finds it
better.

torch sends float32 products to MKL, which runs at less than half speed on AMD CPUs. torch's switch
for reduced precision sends them to oneDNN instead. On CPUs with AMX oneDNN then rounds the factors
to bfloat16, which is not wanted; on others it computes in float32. Both speed and error are
therefore measured before the switch is used.

Attention keeps torch's own float32 products, in the forward and the backward pass. torch's
attention kernel for the CPU multiplies many small blocks in sequence, and oneDNN prepares each such
product again: with 12 heads of 32 dimensions over 50 items the kernel becomes 6 times slower, its
backward pass 8 times. The kernel is therefore wrapped in torch's dispatch table, and no network
needs to know about it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any, Literal

import torch

from pipeline.compute import fast_paths, measured

Setting = Literal["auto", "default"]
Kind = Literal["onednn", "default"]

KERNELS = (
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention_for_cpu_backward",
)
# The product that is probed: rows, the length of the sums, columns.
SHAPE = (256, 512, 256)
# Rows of the product that are compared with float64.
CHECKED = 32
# oneDNN is used where it is faster by this factor.
FASTER = 1.2
# It is used up to this root mean square error, relative to that of the products. Float32 gives 2e-7
# to 6e-7, factors rounded to bfloat16 2e-3.
LARGEST_ERROR = 3e-6


@dataclass(frozen=True)
class Products:
    """The choice, and the measurements that led to it."""

    kind: Kind  # "onednn", or "default" for torch's own choice
    faster: float | None = (
        None  # time of the default divided by time of oneDNN; None where nothing was measured
    )
    error: float | None = (
        None  # relative root mean square error of oneDNN; None where nothing was measured
    )


def apply(setting: Setting = "auto") -> Products:
    """Choose how this process multiplies float32 matrices on the CPU; "auto" takes what `probe`
    finds better.
    """
    chosen = probe() if setting == "auto" else Products("default")
    use(chosen.kind)
    return chosen


def probe() -> Products:
    """Measure both ways on one thread, once per machine (`measured`); the better one, with the
    measurements.
    """
    if not has_switch() or not fast_paths.are_on():
        return Products("default")
    rows, inner, columns = SHAPE
    draws = torch.Generator().manual_seed(0)
    left, right = (
        torch.randn(rows, inner, generator=draws),
        torch.randn(inner, columns, generator=draws),
    )

    def product(kind: Kind) -> torch.Tensor:
        before = current()
        use(kind)
        try:
            return left @ right
        finally:
            use(before)

    def faster() -> float:
        default, other = measured.least_seconds(
            lambda: product("default"), lambda: product("onednn")
        )
        return default / other

    def error() -> float:
        exact = left[:CHECKED].double() @ right.double()
        computed = product("onednn")[:CHECKED]
        return float((computed - exact).square().mean().sqrt() / exact.square().mean().sqrt())

    return choose(measured.once("oneDNN faster", faster), measured.once("oneDNN error", error))


def choose(faster: float, error: float) -> Products:
    """Choose oneDNN where it is faster and as accurate as float32."""
    return Products(
        "onednn" if faster >= FASTER and error < LARGEST_ERROR else "default", faster, error
    )


def use(kind: Kind) -> None:
    """Multiply float32 matrices in this way from now on, in all threads of this process."""
    if kind == "onednn":
        keep_own_products()
        turn(True)
    elif is_on():
        turn(False)


def current() -> Kind:
    """How this process multiplies float32 matrices."""
    return "onednn" if is_on() else "default"


def has_switch() -> bool:
    """Check this torch: it needs oneDNN, the switch (torch 2.9) and access to its kernels (2.10,
    for attention).
    """
    return (
        torch.backends.mkldnn.is_available()
        and hasattr(torch.backends.mkldnn, "matmul")
        and hasattr(torch.library, "get_kernel")
    )


def is_on() -> bool:
    """Read the switch."""
    return has_switch() and _of_products().fp32_precision == "bf16"


def turn(on: bool) -> None:
    """Set the switch, for all threads of the process."""
    _of_products().fp32_precision = "bf16" if on else "ieee"


def _of_products() -> Any:
    # Not torch.set_float32_matmul_precision("medium"), which also allows TF32 on a GPU.
    return torch.backends.mkldnn.matmul  # type: ignore[attr-defined]


@cache
def keep_own_products() -> torch.library.Library:
    """Wrap torch's attention kernels for the CPU in `own_products`, once in a process."""
    library = torch.library.Library("aten", "IMPL")
    for name in KERNELS:
        kernel = torch.library.get_kernel(f"aten::{name}", "CPU")
        library.impl(name, own_products()(kernel.call_boxed), "CPU", with_keyset=True)
    return library


class _Inside:
    """How many threads are inside `own_products`, and whether the switch was on before the first of
    them.
    """

    lock = Lock()
    count = 0
    before = False


@contextmanager
def own_products() -> Iterator[None]:
    """Leave float32 products to torch's own choice inside the block. Several threads may be inside
    at once.
    """
    with _Inside.lock:
        if not _Inside.count and is_on():
            _Inside.before = True
            turn(False)
        _Inside.count += 1
    try:
        yield
    finally:
        with _Inside.lock:
            _Inside.count -= 1
            if not _Inside.count and _Inside.before:
                turn(True)
                _Inside.before = False
