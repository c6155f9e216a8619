"""InfoNCE (van den Oord et al. 2018) over the whole batch and over the hardest negatives; CRCL for
noisy pairs.
"""

from abc import abstractmethod

import torch
from torch import Tensor

from pipeline.make.heads.objectives.base import Objective
from pipeline.make.heads.objectives.options import (
    ConstantKOptions,
    CRCLOptions,
    InfoNCEOptions,
    RandomKOptions,
)


class HardestInfoNCE(Objective):
    """InfoNCE over the K hardest negatives of each query, both directions summed, each a mean over
    the batch.

    Only these negatives enter the loss and receive a gradient. A query with fewer uses all of them;
    one without any adds 0. The margin is subtracted from every positive similarity (VSE+2AD 3.3).

    `log`: "negatives", the K used.
    """

    def __init__(self, options: RandomKOptions) -> None:
        super().__init__()
        self.options = options

    def loss(self, similarity: Tensor, negatives: Tensor) -> Tensor:
        hardest, more = self._hardest(similarity.detach())
        self.log = {"negatives": float(hardest), **more}
        logits = similarity / self.options.temperature
        positive = logits.diagonal() - self.options.margin / self.options.temperature
        i2t = self._one_direction(logits, positive, negatives, hardest)
        t2i = self._one_direction(logits.T, positive, negatives.T, hardest)
        return i2t + t2i

    @abstractmethod
    def _hardest(self, similarity: Tensor) -> tuple[int, dict[str, float]]:
        """K in 0..B for a batch's similarities [B, B], and further values to be logged."""

    def _one_direction(
        self, logits: Tensor, positive: Tensor, negatives: Tensor, hardest: int
    ) -> Tensor:
        """InfoNCE of the queries that are rows of logits [B, B], similarities divided by the
        temperature.
        """
        hard = logits.masked_fill(~negatives, float("-inf"))
        if hardest < len(logits) - 1:
            hard = hard.topk(hardest, dim=1, sorted=False).values
        if self.options.denominator == "with_positive":
            terms = torch.cat([positive.unsqueeze(1), hard], dim=1)
            denominator = terms.logsumexp(1)
            return (denominator - positive).mean()
        # Without a negative the sum is empty: such a row would give -inf, and NaN gradients.
        has_negatives = negatives.any(1)
        terms = torch.where(has_negatives.unsqueeze(1), hard, 0.0)
        cost = terms.logsumexp(1) - positive
        return torch.where(has_negatives, cost, 0.0).mean()


class InfoNCE(HardestInfoNCE):
    """−log softmax of the positive among all of a query's pairs: a mean over the batch, summed over
    both directions.

    `log`: "negatives", one less than the batch.
    """

    def __init__(self, options: InfoNCEOptions) -> None:
        super().__init__(RandomKOptions(temperature=options.temperature))

    def _hardest(self, similarity: Tensor) -> tuple[int, dict[str, float]]:
        return len(similarity) - 1, {}


class ConstantK(HardestInfoNCE):
    """AdOpt with a fixed K: `k`, or one less than the batch if that is smaller."""

    def __init__(self, options: ConstantKOptions) -> None:
        super().__init__(options)
        self.k = options.k

    def _hardest(self, similarity: Tensor) -> tuple[int, dict[str, float]]:
        return min(self.k, len(similarity) - 1), {}


class RandomK(HardestInfoNCE):
    """AdOpt with K drawn uniformly from 1 … B − 1 for each batch.

    K is drawn from torch's global CPU generator, so the same seed, or a resumed run's restored
    state, gives the same K.
    """

    def _hardest(self, similarity: Tensor) -> tuple[int, dict[str, float]]:
        if len(similarity) == 1:
            return 0, {}
        return int(torch.randint(1, len(similarity), ())), {}


class CRCL(Objective):
    """Raises the probability of pairs in proportion to the trust in each, and lowers that of all
    wrong pairs.

    The active complementary loss of CRCL (Qin et al., NeurIPS 2023), for training on noisy
    correspondences.

    p_ij = softmax of s_ij / τ over the candidates j of query i. The trust in pair i is y_i, and the
    loss mean(y_i · −log p_ii) + λ · mean(Σ_{j≠i} tan p_ij / (Σ_j tan p_ij)^(1 − y_i)), each summed
    over both directions. For y = 1 the first part is InfoNCE. For y = 0 it vanishes and the second
    is bounded, so a wrong pair cannot dominate.

    y = 1 in the warm-up epochs, then y_i is the mean of p_ii of both directions; no gradient passes
    through it. Without warm-up this is the released code with `mc` off. Its `mc` on has a warm-up,
    too, but then keeps y of each pair over epochs and trains three times from the start with it
    ("self-refining"); that is not done here.

    `log`: "trust", the mean of y, and "negatives", one less than the batch.
    """

    def __init__(self, options: CRCLOptions) -> None:
        super().__init__()
        self.options = options
        self.warm = False

    def start_epoch(self, epoch: int) -> None:
        self.warm = epoch < self.options.warmup_epochs

    def loss(self, similarity: Tensor, negatives: Tensor) -> Tensor:
        own_pairs = torch.eye(len(negatives), dtype=torch.bool, device=negatives.device)
        unused = ~negatives & ~own_pairs
        scaled = similarity / self.options.temperature
        logits = scaled.masked_fill(unused, float("-inf"))
        logs = [logits.log_softmax(1), logits.T.log_softmax(1)]
        trust = torch.ones_like(similarity[0])
        if not self.warm:
            of_pairs = torch.stack([log.diagonal().exp() for log in logs])
            trust = (of_pairs.sum(0) / 2).detach()
        self.log = {"trust": float(trust.mean()), "negatives": len(similarity) - 1.0}
        of_directions = [-trust * log.diagonal() for log in logs]
        active = torch.stack(of_directions).sum(0)
        complementary = torch.zeros_like(trust)
        for log in logs:
            tangent = log.exp().tan()
            of_negatives = (tangent - tangent.diagonal().diag()).sum(1)
            complementary = complementary + of_negatives / tangent.sum(1) ** (1 - trust)
        return active.mean() + self.options.weight * complementary.mean()
