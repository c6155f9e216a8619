"""An exact sort of float32 items with their order on a CPU's vector units, much faster than torch.sort.

NumPy sorts float64 with vector instructions, torch.sort does not. A float32 seen as float64 has 29 spare low
bits: the item's index goes there, so that one sort of plain numbers brings the order along, and rounding back
to float32 gives the exact value. Work goes in chunks that fit a core's cache, one thread each; within a chunk
torch runs on one thread, for its own threads would meet after each of many short operations.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from pipeline.compute.threads import for_another_thread, shared_out

# Values in a chunk: at 2^17 its float64 copy takes 1 MiB, about a core's second-level cache.
CHUNK = 1 << 17
MOST_ITEMS = 1 << 15
# A float64 above every float32 with no low bits set, for padding. An infinity with index bits would be a NaN.
BEHIND = 2.0**1000


def can_sort_fast(items: Tensor) -> bool:
    """Whether this sort is for these items [B, N, D]: finite float32 on a CPU, not too many in a set."""
    return (
        items.device.type == "cpu"
        and items.dtype == torch.float32
        and items.shape[1] <= MOST_ITEMS
        # The sum is finite only if every value is, and costs little.
        and bool(items.detach().sum().isfinite())
    )


def order_dtype(slots: int) -> torch.dtype:
    """The smallest dtype for an index below `slots`."""
    return torch.uint8 if slots <= 256 else torch.int16


def sort_chunk(items: Tensor, padding: Tensor | None) -> tuple[Tensor, Tensor]:
    """Sort each dimension of a few samples in descending order, padding last.

    Args:
        items: float32 [b, N, D], finite.
        padding: bool [b, N], True where a slot is padding; None if none is.

    Returns:
        float32 [b, D, N], zeros in place of padding, and the index of each value among the items, [b, D, N]
        of `order_dtype`.
    """
    slots = items.shape[1]
    packed = items.transpose(1, 2).contiguous().neg().double()
    if padding is not None:
        packed.masked_fill_(padding.unsqueeze(1), BEHIND)
    bits = packed.view(torch.int64)
    bits |= torch.arange(slots)
    packed.numpy().sort(axis=-1)
    ordered = packed.float().neg_()
    if padding is not None:
        ordered.masked_fill_(padding.unsqueeze(1), 0.0)
    # The conversion keeps the low bits alone, which is where the index is.
    return ordered, bits.to(order_dtype(slots))


def gather_chunk(items: Tensor, index: Tensor) -> Tensor:
    """Items [b, N, D] in a known order, int64 [b, D, N], as [b, D, N]."""
    return items.transpose(1, 2).contiguous().gather(2, index)


def scatter_chunk(ordered: Tensor, index: Tensor) -> Tensor:
    """The inverse of `gather_chunk`: [b, D, N] back to the items' places, [b, N, D]."""
    return torch.empty_like(ordered).scatter_(2, index, ordered).transpose(1, 2)


def in_chunks(work: Callable[[slice], None], items: Tensor) -> None:
    """Call work with slices of the batch of items [B, N, D], on as many threads as torch uses."""
    batch, slots, dim = items.shape
    step = max(1, CHUNK // (slots * dim))
    parts = [slice(start, min(start + step, batch)) for start in range(0, batch, step)]

    with shared_out() as threads:
        alone = for_another_thread(work)
        if threads == 1 or len(parts) <= 1:
            for part in parts:
                alone(part)
        else:
            with ThreadPoolExecutor(min(threads, len(parts))) as pool:
                list(pool.map(alone, parts))
