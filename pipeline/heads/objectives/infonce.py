"""InfoNCE over the whole batch (van den Oord et al. 2018)."""

from __future__ import annotations

from torch import Tensor

from pipeline.heads.objectives.base import Objective, check_options, hardest_infonce


class InfoNCE(Objective):
    """−log softmax of the positive among all of a query's pairs: a mean over the batch, summed over both directions.

    `log`: "negatives", one less than the batch.

    Args:
        temperature: τ. VSE+2AD uses 0.05.
    """

    def __init__(self, temperature: float = 0.05) -> None:
        super().__init__()
        check_options(temperature, "with_positive")
        self.temperature = temperature

    def loss(self, similarity: Tensor, negatives: Tensor) -> Tensor:
        self.log = {"negatives": len(similarity) - 1.0}
        return hardest_infonce(similarity, negatives, len(similarity) - 1, self.temperature)
