"""AdOpt, the adaptive objective of VSE+2AD (3.3, equation 6)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pipeline.objectives.base import Objective
from pipeline.objectives.hardest_infonce import check_options, hardest_infonce


class AdOpt(Objective):
    """InfoNCE over the K hardest negatives. K follows the state of the model: large early in training, small later.

    γ_align = mean of the diagonal, γ_uniform = log mean exp(s) over all B × B pairs,
    K = clamp(⌊B · cos((γ_align + γ_uniform) · π / 4)⌋, 1, B − 1). No gradient passes through K.

    The paper prints the loss with the K negatives alone in its denominator ("printed"). That is not InfoNCE: the loss
    is negative for a positive above its negatives, and pairs that are already separated keep their full gradient.
    The default, "with_positive", adds the positive to the denominator, as in van den Oord et al. (2018), whom the paper
    cites, and as in the released code. Then the loss is never negative and vanishes for separated pairs.

    The released code also has a margin of 0.2, which the paper does not mention: `margin`. The recipe vse2ad uses it;
    docs/measured.md has its effect.

    As printed, γ_uniform tends to 0 once the negatives are near 0, and K stays above 0.7 B: equation 6 cannot give the
    4 to 5 negatives of the paper's Figure C-2. The released code uses mean exp(−s) instead, which is near 1 then.

    `log`: "negatives" (K), "align" and "uniform" (the two γ).

    Args:
        temperature: τ. The paper uses 0.05.
        denominator: "with_positive" or "printed".
        margin: 0 for equation 6; the released code has 0.2. Refused with "printed", where it has no effect.

    Raises:
        InputError: For a temperature that is not positive, an unknown denominator, or a margin below 0.
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
        align, uniform = alignment_and_uniformity(similarity.detach())
        hardest = negatives_to_use(len(similarity), align, uniform)
        self.log = {"negatives": float(hardest), "align": align, "uniform": uniform}
        return hardest_infonce(similarity, negatives, hardest, self.temperature, self.denominator, self.margin)


def alignment_and_uniformity(similarity: Tensor) -> tuple[float, float]:
    """Compute the two quantities of equation 6.

    Args:
        similarity: Float [B, B], positives on the diagonal.

    Returns:
        γ_align and γ_uniform.
    """
    align = similarity.diagonal().mean()
    uniform = similarity.logsumexp((0, 1)) - math.log(similarity.numel())
    align_value, uniform_value = torch.stack([align, uniform]).tolist()
    return align_value, uniform_value


def negatives_to_use(batch: int, align: float, uniform: float) -> int:
    """Compute K of equation 6.

    Args:
        batch: B, the number of pairs.
        align: γ_align.
        uniform: γ_uniform.

    Returns:
        K in 1..B − 1; 0 for a batch of one pair, which has no negatives.
    """
    angle = (align + uniform) * math.pi / 4
    # A diverged model has no K; the loss is then NaN, which is for the training loop to report.
    wanted = math.floor(batch * math.cos(angle)) if math.isfinite(angle) else 1
    return min(max(wanted, 1), batch - 1)
