"""AdOpt against the released code's loss, forward and backward from L2-normalised embeddings in float32.

python -m benchmarks.objectives
"""

from __future__ import annotations

import torch
from torch.nn.functional import normalize

from benchmarks.measure import Step, least_times, peak_memory, report
from benchmarks.released import adcto
from pipeline import objectives

DIM = 1024


def training_step(name: str, batch: int) -> Step:
    """A forward and a backward pass of ours ("adopt") or the released code's ("adcto"), early in training."""
    torch.manual_seed(0)
    images, captions = (normalize(torch.randn(batch, DIM), dim=1).requires_grad_() for _ in range(2))
    objective = objectives.build("adopt")

    def step() -> None:
        images.grad = captions.grad = None
        loss = objective(images @ captions.T) if name == "adopt" else adcto(images, captions)
        loss.backward()

    return step


def main() -> None:
    """Print time and memory of the objective at batches of 128 and 512 pairs."""
    torch.set_num_threads(2)
    for batch in (128, 512):
        seconds = least_times(training_step("adopt", batch), training_step("adcto", batch), repeats=3)
        growth = peak_memory(training_step, "adopt", batch), peak_memory(training_step, "adcto", batch)
        report(f"adopt, batch {batch}", seconds, growth)


if __name__ == "__main__":
    main()
