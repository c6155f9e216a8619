"""AdOpt against the released code's loss, forward and backward from L2-normalised embeddings in
float32.

The released code gathers K negatives for every query, so its time follows K: more than half the
batch at random embeddings, as early in training, and 1 once right pairs are more similar than
others. Both states are timed.

    python -m benchmarks.objectives
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from benchmarks import numbers
from benchmarks.measure import REPORTED, Step, least_times, peak_memory, report
from benchmarks.released import adcto, negatives_to_gather
from pipeline.make.heads import objectives

DIM = 1024
STATES = {"early": 100.0, "late": 0.3}
"""How far a caption's embedding lies from its image's, beside the length of 1 of that."""


def embeddings(state: str, batch: int) -> tuple[Tensor, Tensor]:
    """Images and captions [B, DIM] of unit length: far apart early, each near its partner late."""
    torch.manual_seed(0)
    images = normalize(torch.randn(batch, DIM), dim=1)
    captions = normalize(images + STATES[state] * normalize(torch.randn(batch, DIM), dim=1), dim=1)
    return images.requires_grad_(), captions.requires_grad_()


def training_step(name: str, state: str, batch: int) -> Step:
    """A forward and a backward pass of ours ("adopt") or the released code's ("adcto")."""
    images, captions = embeddings(state, batch)
    objective = objectives.build("adopt")

    def step() -> None:
        images.grad = captions.grad = None
        loss = objective(images @ captions.T) if name == "adopt" else adcto(images, captions)
        loss.backward()

    return step


def main() -> None:
    """Print time and memory of the objective at batches of 128 and 512 pairs, early and late in
    training.
    """
    torch.set_num_threads(2)
    rows = []
    for batch in (128, 512):
        for state in STATES:
            ours, theirs = ("adopt", state, batch), ("adcto", state, batch)
            seconds = least_times(training_step(*ours), training_step(*theirs), repeats=3)
            growth = peak_memory(training_step, *ours), peak_memory(training_step, *theirs)
            images, captions = embeddings(state, batch)
            name = f"adopt, batch {batch}, {state} (K {negatives_to_gather(captions @ images.T)})"
            rows.append(report(name, seconds, growth))
    numbers.keep("objectives", REPORTED, rows)


if __name__ == "__main__":
    main()
