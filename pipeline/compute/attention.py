"""Keep attention on torch's own float32 products, in the forward and the backward pass.

torch's attention kernel for the CPU multiplies many small blocks in sequence, and oneDNN prepares each such product
anew: with 12 heads of 32 dimensions over 50 items the kernel becomes 6 times slower, its backward pass 8 times. The
kernel is therefore wrapped in torch's dispatch table, and no network needs to know about it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import torch

from pipeline.compute import onednn

KERNELS = ("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward")


@cache
def keep_own_products() -> torch.library.Library:
    """Wrap torch's attention kernels for the CPU in `own_products`, once in a process."""
    library = torch.library.Library("aten", "IMPL")
    for name in KERNELS:
        library.impl(name, _wrapped(torch.library.get_kernel(f"aten::{name}", "CPU")), "CPU", with_keyset=True)
    return library


def _wrapped(kernel: Any) -> Callable[..., Any]:
    def run(keys: Any, *arguments: Any, **options: Any) -> Any:
        with own_products():
            return kernel.call_boxed(keys, *arguments, **options)
    return run


class _Inside:
    """How many threads are inside `own_products`, and whether the switch was on before the first of them."""

    lock = Lock()
    count = 0
    before = False


@contextmanager
def own_products() -> Iterator[None]:
    """Leave float32 products to torch's own choice inside the block. Several threads may be inside at once."""
    with _Inside.lock:
        if not _Inside.count and onednn.is_on():
            _Inside.before = True
            onednn.turn(False)
        _Inside.count += 1
    try:
        yield
    finally:
        with _Inside.lock:
            _Inside.count -= 1
            if not _Inside.count and _Inside.before:
                onednn.turn(True)
                _Inside.before = False
