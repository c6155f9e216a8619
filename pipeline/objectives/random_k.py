"""InfoNCE over a random number of hardest negatives: AdOpt with K drawn instead of adapted."""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.objectives.base import Objective
from pipeline.objectives.contrast import check_contrast, hardest_contrast


class RandomK(Objective):
    """InfoNCE over the K hardest negatives, with K drawn uniformly from 1 … B − 1 for each batch.

    K comes from torch's global CPU generator, so that a seed, or a resumed run's restored state, repeats it.

    `log`: "negatives", the K drawn.

    Args:
        temperature: τ.
        denominator: "with_positive" or "printed", as for AdOpt.
        margin: as for AdOpt.

    Raises:
        InputError: for a temperature that is not positive, an unknown denominator, or a margin below 0.
    """

    def __init__(
        self, temperature: float = 0.05, denominator: str = "with_positive", margin: float = 0.0
    ) -> None:
        super().__init__()
        check_contrast(temperature, denominator, margin)
        self.temperature = temperature
        self.denominator = denominator
        self.margin = margin

    def loss(self, similarity: Tensor, negatives: Tensor) -> Tensor:
        batch = len(similarity)
        hardest = int(torch.randint(1, batch, ())) if batch > 1 else 0
        self.log = {"negatives": float(hardest)}
        return hardest_contrast(similarity, negatives, hardest, self.temperature, self.denominator, self.margin)
