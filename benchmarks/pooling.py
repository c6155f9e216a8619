"""AdPool and GPO against the released code's, forward and backward on [128, N, 1024] in float32.

python -m benchmarks.pooling
"""

from __future__ import annotations

import torch
from torch import nn

from benchmarks import numbers, released
from benchmarks.measure import REPORTED, Step, least_times, peak_memory, report
from pipeline.make.heads import pooling

BATCH, DIM = 128, 1024


def module(name: str) -> nn.Module:
    """One of the four that are compared."""
    if name == "released adpool":
        return released.AP(DIM)
    if name == "released gpo":
        return released.GPO()
    return pooling.build(name, DIM)


def training_step(name: str, slots: int) -> Step:
    """A forward and a backward pass over a full batch of sets of the given size."""
    torch.manual_seed(0)
    pool = module(name)
    items = torch.randn(BATCH, slots, DIM, requires_grad=True)
    counts = torch.full((BATCH,), slots)

    def step() -> None:
        items.grad = None
        pool.zero_grad()
        pool(items, counts).sum().backward()

    return step


def main() -> None:
    """Print time and memory of each pooling at 36 and 256 items."""
    torch.set_num_threads(2)
    rows = []
    for name in ("adpool", "gpo"):
        for slots in (36, 256):
            ours, theirs = (name, slots), (f"released {name}", slots)
            seconds = least_times(training_step(*ours), training_step(*theirs), repeats=3)
            growth = peak_memory(training_step, *ours), peak_memory(training_step, *theirs)
            rows.append(report(f"{name} [{BATCH}, {slots}, {DIM}]", seconds, growth))
    numbers.keep("pooling", REPORTED, rows)


if __name__ == "__main__":
    main()
