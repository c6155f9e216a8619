"""AdOpt, the adaptive objective of VSE+2AD (3.3, equation 6)."""

import math

import torch
from torch import Tensor

from pipeline.make.heads.objectives.infonce import HardestInfoNCE
from pipeline.make.heads.objectives.options import AdOptOptions


class AdOpt(HardestInfoNCE):
    """InfoNCE over the K hardest negatives. K follows the state of the model: large early in
    training, small later.

    With γ_align the mean similarity of positives, there are two readings of K. No gradient passes
    through it.

    - "printed" (equation 6): γ_uniform = log mean exp(s) over all B × B pairs,
      K = clamp(⌊B · cos((γ_align + γ_uniform) · π / 4)⌋, 1, B − 1).
    - "released" (the paper's code): γ_uniform = mean exp(−s) over all B × B pairs, with 0 for s on
      the diagonal,
      K = clamp(⌊B · cos((γ_align + γ_uniform)^1.25)⌋ + 1, 1, B − 1).

    Section 3.3 says that γ_uniform is in 0..1 and measures how uniformly all vectors are spread,
    and that the angle is near 0 early in training and near π / 2 later, so that K falls to few
    negatives: 4 to 5 in Figure C-2. As printed, γ_uniform tends to 0 for vectors that are spread,
    so the angle stays below π / 4 and K above 0.7 B: the late phase never comes. As released,
    γ_uniform tends to 1, the angle passes π / 2 and K falls to 1. But random unit vectors have
    γ_uniform = 1 too, so K starts near B / 2, not near B as in the text and as printed. On
    Flickr8k's val the printed reading gave the higher RSUM (docs/measured.md), so the recipe vse2ad
    has it.

    Where fewer than K negatives of a pair are above 0 the released code takes the positive itself
    as one of its negatives. Here a positive is never its own negative, whatever `count` is.

    The paper prints the loss with the K negatives alone in its denominator ("printed"). That is not
    InfoNCE: the loss is negative for a positive above its negatives, and pairs that are already
    separated keep their full gradient. The default, "with_positive", adds the positive to the
    denominator, as in van den Oord et al. (2018), whom the paper cites, and as in the released
    code. Then the loss is never negative and vanishes for separated pairs.

    The released code also has a margin of 0.2, which the paper does not mention: `margin`. The
    recipe vse2ad uses it; docs/measured.md has its effect.

    `log`: "negatives" (K), "align" and "uniform" (the two γ).
    """

    def __init__(self, options: AdOptOptions) -> None:
        super().__init__(options)
        self.count = COUNTS[options.count]

    def _hardest(self, similarity: Tensor) -> tuple[int, dict[str, float]]:
        align, uniform, hardest = self.count(similarity)
        return hardest, {"align": align, "uniform": uniform}


def printed(similarity: Tensor) -> tuple[float, float, int]:
    """Compute γ_align, γ_uniform and K in 1..B − 1 as equation 6 has it; K is 0 for a batch of one
    pair.
    """
    uniform = similarity.logsumexp((0, 1)) - math.log(similarity.numel())
    align, spread = torch.stack([similarity.diagonal().mean(), uniform]).tolist()
    angle = (align + spread) * math.pi / 4
    return align, spread, _clamped(len(similarity), angle, 0)


def released(similarity: Tensor) -> tuple[float, float, int]:
    """Compute γ_align, γ_uniform and K in 1..B − 1 as the released code has it; K is 0 for a batch
    of one pair.
    """
    batch = len(similarity)
    # exp(-0) = 1 for each pair on the diagonal.
    positive = similarity.diagonal()
    all_pairs = similarity.neg().exp().sum()
    pairs = all_pairs - positive.neg().exp().sum() + batch
    uniform = pairs / similarity.numel()
    align, spread = torch.stack([positive.mean(), uniform]).tolist()
    angle = max(align + spread, 0.0) ** 1.25
    return align, spread, _clamped(batch, angle, 1)


def _clamped(batch: int, angle: float, more: int) -> int:
    hardest = 1
    # A diverged model has no K; the loss is then NaN, and the training loop reports it.
    if math.isfinite(angle):
        hardest = math.floor(batch * math.cos(angle)) + more
    return min(max(hardest, 1), batch - 1)


COUNTS = {"printed": printed, "released": released}
