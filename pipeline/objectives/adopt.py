"""AdOpt, the adaptive objective of VSE+2AD (3.3, equation 6)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pipeline.objectives.base import Objective
from pipeline.objectives.contrast import check_contrast, hardest_contrast


class AdOpt(Objective):
    """InfoNCE over the K hardest negatives, with K from the state of the model: many early, few late.

    γ_align = mean of the diagonal, γ_uniform = log mean exp(s) over all B × B pairs,
    K = clamp(⌊B · cos((γ_align + γ_uniform) · π / 4)⌋, 1, B − 1), with no gradient through K.

    The paper prints the loss with the K negatives alone in its denominator ("printed"). That is no InfoNCE: a
    positive above its negatives gives a negative loss, which pulls with full force on pairs long told apart.
    The default, "with_positive", adds the positive, as van den Oord et al. (2018), whom the paper cites,
    define InfoNCE and as the released code has it: the loss is never negative, and fades as it is solved.

    The released code adds a margin of 0.2 to the negatives, of which the paper says nothing: `margin`. The recipe
    vse2ad has it, for what it is worth on photographs (README).

    Once negatives are near 0, so is γ_uniform as printed, and K stays above 0.7 B: the 4 to 5 negatives of the paper's
    Figure C-2 cannot come from equation 6. The released code has mean exp(−s) in its place, which is near 1 then.

    `log`: "negatives" (K), "align" and "uniform" (the two γ).

    Args:
        temperature: τ. The paper uses 0.05.
        denominator: "with_positive" or "printed".
        margin: 0 for equation 6; the released code has 0.2. Refused with "printed", where it does nothing.

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
        align, uniform = alignment_and_uniformity(similarity.detach())
        hardest = negatives_to_use(len(similarity), align, uniform)
        self.log = {"negatives": float(hardest), "align": align, "uniform": uniform}
        return hardest_contrast(similarity, negatives, hardest, self.temperature, self.denominator, self.margin)


def alignment_and_uniformity(similarity: Tensor) -> tuple[float, float]:
    """γ_align and γ_uniform of a similarity matrix [B, B]."""
    align = similarity.diagonal().mean()
    uniform = similarity.logsumexp((0, 1)) - math.log(similarity.numel())
    align_value, uniform_value = torch.stack([align, uniform]).tolist()
    return align_value, uniform_value


def negatives_to_use(batch: int, align: float, uniform: float) -> int:
    """K of equation 6, in 1..batch − 1 (0 for a batch of one pair, which has no negatives)."""
    angle = (align + uniform) * math.pi / 4
    # A diverged model has no K; the loss is then NaN, which is for the training loop to report.
    wanted = math.floor(batch * math.cos(angle)) if math.isfinite(angle) else 1
    return min(max(wanted, 1), batch - 1)
