"""An exact sort of float32 items with their order on a CPU's vector units, much faster than
torch.sort.

NumPy sorts float64 with vector instructions, torch.sort does not. A float32 converted to float64
has 29 unused low bits. The item's index is stored there, so that one sort of plain numbers also
gives the order, and rounding back to float32 gives the exact value.

Samples are processed in chunks with equally many items, so padding is never read. A chunk fits a
core's cache and is processed by one thread on which torch runs single-threaded: torch's own threads
would synchronise after each of many short operations.
"""

from collections.abc import Callable
from itertools import groupby
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from pipeline.foundation.compute import fast_paths
from pipeline.foundation.compute.threads import each, shared_out

# Values in a chunk: at 2^17 its float64 copy takes 1 MiB, about a core's second-level cache.
CHUNK = 1 << 17
# Values in a batch below which one thread is faster: with so few, threads wait for Python's lock
# longer than they compute.
FOR_ONE_THREAD = 1 << 20
MOST_ITEMS = 1 << 15
SIGN = torch.iinfo(torch.int64).min  # the sign bit of a float64
Result = TypeVar("Result")


class Chunk(NamedTuple):
    """b samples of n items each."""

    number: int  # the chunk's position among all chunks
    part: slice  # the samples' positions when samples are ordered by their number of items
    rows: list[int]  # the samples' rows in the batch, [b]
    items: int  # n


class Chunks:
    """The samples of a batch, valid bool [B, N], ordered by their number of items, in chunks.

    order: int64 [B], the rows of the batch in that order. chunks: consecutive parts of it. dim: of
        the items.
    """

    def __init__(self, valid: Tensor, dim: int) -> None:
        counts = valid.sum(1)
        self.order = counts.argsort(stable=True)
        self.values = int(counts.sum()) * dim
        self.chunks: list[Chunk] = []
        start = 0
        for count, equal in groupby(self.order.tolist(), counts.tolist().__getitem__):
            rows = list(equal)
            most = max(1, CHUNK // (count * dim))
            for first in range(0, len(rows), most):
                some = rows[first : first + most]
                part = slice(start, start + len(some))
                self.chunks.append(Chunk(len(self.chunks), part, some, count))
                start += len(some)

    def each(self, work: Callable[[Chunk], Result]) -> list[Result]:
        """Process every chunk, on as many threads as torch uses."""
        if self.values >= FOR_ONE_THREAD:
            return each(work, self.chunks)
        with shared_out():
            return [work(chunk) for chunk in self.chunks]

    def in_batch(self, values: Tensor) -> Tensor:
        """Restore the order of the batch from values [B, ...] of the samples in `order`."""
        return torch.empty_like(values).index_copy_(0, self.order, values)


def can_sort_fast(items: Tensor) -> bool:
    """Check whether this sort applies: to finite float32 [B, N, D] on a CPU with at most
    `MOST_ITEMS` items.
    """
    if torch.compiler.is_exporting():
        return False
    if items.device.type != "cpu" or items.dtype != torch.float32:
        return False
    if items.shape[1] > MOST_ITEMS or not fast_paths.are_on():
        return False
    # A sum is finite only if every value is, and costs little.
    return bool(items.detach().sum().isfinite())


def read_chunk(items: Tensor, chunk: Chunk, dtype: torch.dtype = torch.float32) -> Tensor:
    """Copy a chunk [b, D, n] out of a batch [B, N, D]."""
    values = items.new_empty(len(chunk.rows), items.shape[2], chunk.items, dtype=dtype)
    # Torch transposes matrices twice as fast one by one.
    for sample, row in zip(values, chunk.rows, strict=True):
        sample.copy_(items[row, : chunk.items].T)
    return values


def write_chunk(items: Tensor, chunk: Chunk, values: Tensor) -> None:
    """Copy a chunk's values [b, D, n] into a batch [B, N, D], the inverse of `read_chunk`; padding
    becomes zero.
    """
    for sample, row in zip(values, chunk.rows, strict=True):
        items[row, : chunk.items].copy_(sample.T)
        items[row, chunk.items :].zero_()


def sort_chunk(values: Tensor) -> tuple[Tensor, Tensor]:
    """Sort float32 [b, D, n] along n, descending; with the index of each among the values, uint8 or
    int16.

    The values may be given as float64, which are overwritten: `read_chunk` converts them as it
    copies.
    """
    packed = values.double()
    bits = packed.view(torch.int64)
    bits ^= torch.arange(values.shape[2]) + SIGN  # the negative values in ascending order
    packed.numpy().sort(axis=-1)
    dtype = torch.uint8 if values.shape[2] <= 256 else torch.int16
    # The conversion keeps the low bits alone, which is where the index is.
    return packed.float().neg_(), bits.to(dtype)


def unsort_chunk(ordered: Tensor, indices: Tensor) -> Tensor:
    """Undo `sort_chunk`, by its indices as int64 [b, D, n]."""
    return torch.empty_like(ordered).scatter_(2, indices, ordered)
