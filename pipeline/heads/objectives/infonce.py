"""InfoNCE over the whole batch (van den Oord et al. 2018), and over a number of hardest negatives."""

import torch
from torch import Tensor

from pipeline.heads.objectives.base import Objective, check_options, hardest_infonce
from pipeline.parts.errors import InputError


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


# InfoNCE over a constant number of hardest negatives: AdOpt with a fixed K.
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


# InfoNCE over a random number of hardest negatives: AdOpt with K drawn at random.
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
