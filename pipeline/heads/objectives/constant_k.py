"""InfoNCE over a constant number of hardest negatives: AdOpt with a fixed K."""

from __future__ import annotations

from torch import Tensor

from pipeline.heads.objectives.base import Objective, check_options, hardest_infonce
from pipeline.parts.errors import InputError


class ConstantK(Objective):
    """InfoNCE over the K hardest negatives, both directions summed, each a mean over the batch.

    `log`: "negatives", the K used: k, or one less than the batch if that is smaller.

    Args:
        k: K.
        temperature: τ.
        denominator: "with_positive" or "printed", as for AdOpt.
        margin: As for AdOpt.
    """

    def __init__(
        self, k: int = 1, temperature: float = 0.05, denominator: str = "with_positive", margin: float = 0.0
    ) -> None:
        super().__init__()
        if k < 1:
            raise InputError(f"constant_k needs k of at least 1, got {k}")
        check_options(temperature, denominator, margin)
        self.k = k
        self.temperature = temperature
        self.denominator = denominator
        self.margin = margin

    def loss(self, similarity: Tensor, negatives: Tensor) -> Tensor:
        hardest = min(self.k, len(similarity) - 1)
        self.log = {"negatives": float(hardest)}
        return hardest_infonce(similarity, negatives, hardest, self.temperature, self.denominator, self.margin)
