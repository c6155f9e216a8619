"""InfoNCE over a random number of hardest negatives: AdOpt with K drawn at random."""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.heads.objectives.base import Objective, check_options, hardest_infonce


class RandomK(Objective):
    """InfoNCE over the K hardest negatives, with K drawn uniformly from 1 … B − 1 for each batch.

    K is drawn from torch's global CPU generator, so the same seed, or a resumed run's restored state, gives the same K.

    `log`: "negatives", the K drawn.

    Args:
        temperature: τ.
        denominator: "with_positive" or "printed", as for AdOpt.
        margin: As for AdOpt.
    """

    def __init__(
        self, temperature: float = 0.05, denominator: str = "with_positive", margin: float = 0.0
    ) -> None:
        super().__init__()
        check_options(temperature, denominator, margin)
        self.temperature = temperature
        self.denominator = denominator
        self.margin = margin

    def loss(self, similarity: Tensor, negatives: Tensor) -> Tensor:
        batch = len(similarity)
        hardest = int(torch.randint(1, batch, ())) if batch > 1 else 0
        self.log = {"negatives": float(hardest)}
        return hardest_infonce(similarity, negatives, hardest, self.temperature, self.denominator, self.margin)
