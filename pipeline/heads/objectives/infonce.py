"""InfoNCE (van den Oord et al. 2018) over the whole batch and over the hardest negatives; CRCL for noisy pairs."""

from abc import abstractmethod

import torch
from torch import Tensor

from pipeline.heads.objectives.base import Objective
from pipeline.parts.errors import InputError

DENOMINATORS = ("with_positive", "printed")


class HardestInfoNCE(Objective):
    """InfoNCE over the K hardest negatives of each query, both directions summed, each a mean over the batch.

    Only these negatives enter the loss and receive a gradient. A query with fewer uses all of them; one without any
    adds 0. The margin is subtracted from every positive similarity (VSE+2AD 3.3).

    `log`: "negatives", the K used.

    Args:
        temperature: τ.
        denominator: "with_positive", or "printed": the K negatives alone, as for AdOpt.
        margin: As for AdOpt.
    """

    def __init__(self, temperature: float = 0.05, denominator: str = "with_positive", margin: float = 0.0) -> None:
        super().__init__()
        if not temperature > 0:
            raise InputError(f"the temperature must be positive, got {temperature}")
        if denominator not in DENOMINATORS:
            raise InputError(f"denominator must be one of {', '.join(DENOMINATORS)}, got {denominator!r}")
        if not 0 <= margin < float("inf"):
            raise InputError(f"the margin must be a number of at least 0, got {margin}")
        if margin and denominator == "printed":
            raise InputError("a margin does nothing with the printed denominator; leave one of the two out")
        self.temperature, self.denominator, self.margin = temperature, denominator, margin

    def loss(self, similarity: Tensor, negatives: Tensor) -> Tensor:
        hardest, more = self._hardest(similarity.detach())
        self.log = {"negatives": float(hardest), **more}
        logits = similarity / self.temperature
        positive = logits.diagonal() - self.margin / self.temperature
        return (self._one_direction(logits, positive, negatives, hardest)
                + self._one_direction(logits.T, positive, negatives.T, hardest))

    @abstractmethod
    def _hardest(self, similarity: Tensor) -> tuple[int, dict[str, float]]:
        """K in 0..B for a batch's similarities [B, B], and further values to be logged."""

    def _one_direction(self, logits: Tensor, positive: Tensor, negatives: Tensor, hardest: int) -> Tensor:
        """InfoNCE of the queries that are rows of logits [B, B], similarities divided by the temperature."""
        hard = logits.masked_fill(~negatives, float("-inf"))
        if hardest < len(logits) - 1:
            hard = hard.topk(hardest, dim=1, sorted=False).values
        if self.denominator == "with_positive":
            return (torch.cat([positive.unsqueeze(1), hard], dim=1).logsumexp(1) - positive).mean()
        # Without a negative the sum is empty: such a row would give -inf, and NaN gradients.
        has_negatives = negatives.any(1)
        cost = torch.where(has_negatives.unsqueeze(1), hard, 0.0).logsumexp(1) - positive
        return torch.where(has_negatives, cost, 0.0).mean()


class InfoNCE(HardestInfoNCE):
    """−log softmax of the positive among all of a query's pairs: a mean over the batch, summed over both directions.

    `log`: "negatives", one less than the batch.

    Args:
        temperature: τ. VSE+2AD uses 0.05.
    """

    def __init__(self, temperature: float = 0.05) -> None:
        super().__init__(temperature)

    def _hardest(self, similarity: Tensor) -> tuple[int, dict[str, float]]:
        return len(similarity) - 1, {}


class ConstantK(HardestInfoNCE):
    """AdOpt with a fixed K: `k`, or one less than the batch if that is smaller. Options also as `HardestInfoNCE`."""

    def __init__(self, k: int = 1, temperature: float = 0.05, denominator: str = "with_positive", margin: float = 0.0
                 ) -> None:
        super().__init__(temperature, denominator, margin)
        if k < 1:
            raise InputError(f"constant_k needs k of at least 1, got {k}")
        self.k = k

    def _hardest(self, similarity: Tensor) -> tuple[int, dict[str, float]]:
        return min(self.k, len(similarity) - 1), {}


class RandomK(HardestInfoNCE):
    """AdOpt with K drawn uniformly from 1 … B − 1 for each batch.

    K is drawn from torch's global CPU generator, so the same seed, or a resumed run's restored state, gives the same K.
    """

    def _hardest(self, similarity: Tensor) -> tuple[int, dict[str, float]]:
        return int(torch.randint(1, len(similarity), ())) if len(similarity) > 1 else 0, {}


class CRCL(Objective):
    """Raises the probability of pairs in proportion to the trust in each, and lowers that of all wrong pairs.

    The active complementary loss of CRCL (Qin et al., NeurIPS 2023), for training on noisy correspondences.

    p_ij = softmax of s_ij / τ over the candidates j of query i. The trust in pair i is y_i, and the loss
    mean(y_i · −log p_ii) + λ · mean(Σ_{j≠i} tan p_ij / (Σ_j tan p_ij)^(1 − y_i)), each summed over both directions. For
    y = 1 the first part is InfoNCE. For y = 0 it vanishes and the second is bounded, so a wrong pair cannot dominate.

    y = 1 in the warm-up epochs, then y_i is the mean of p_ii of both directions; no gradient passes through it. Without
    warm-up this is the released code with `mc` off. Its `mc` on has a warm-up, too, but then keeps y of each pair over
    epochs and trains three times from the start with it ("self-refining"); that is not done here.

    `log`: "trust", the mean of y, and "negatives", one less than the batch.

    Args:
        temperature: τ. The released code has 0.05.
        weight: λ. The released code has 5.
        warmup_epochs: The number of first epochs with y = 1. The released code has 2.
    """

    def __init__(self, temperature: float = 0.05, weight: float = 5.0, warmup_epochs: int = 2) -> None:
        super().__init__()
        if not temperature > 0:
            raise InputError(f"the temperature must be positive, got {temperature}")
        if not 0 <= weight < float("inf") or warmup_epochs < 0:
            raise InputError(f"crcl's weight and warmup_epochs must not be negative, got {weight} and {warmup_epochs}")
        self.temperature, self.weight, self.warmup_epochs = temperature, weight, warmup_epochs
        self.warm = False

    def start_epoch(self, epoch: int) -> None:
        self.warm = epoch < self.warmup_epochs

    def loss(self, similarity: Tensor, negatives: Tensor) -> Tensor:
        unused = ~negatives & ~torch.eye(len(negatives), dtype=torch.bool, device=negatives.device)
        logits = (similarity / self.temperature).masked_fill(unused, float("-inf"))
        logs = logits.log_softmax(1), logits.T.log_softmax(1)
        found = sum(log.diagonal().exp() for log in logs) / 2
        trust = torch.ones_like(similarity[0]) if self.warm else torch.as_tensor(found).detach()
        self.log = {"trust": float(trust.mean()), "negatives": len(similarity) - 1.0}
        active = torch.stack([-trust * log.diagonal() for log in logs]).sum(0)
        tangents = [log.exp().tan() for log in logs]
        complementary = sum((each - each.diagonal().diag()).sum(1) / each.sum(1) ** (1 - trust) for each in tangents)
        return active.mean() + self.weight * torch.as_tensor(complementary).mean()
