"""The active complementary loss of CRCL (Qin et al., NeurIPS 2023), for training on noisy correspondences."""

import torch
from torch import Tensor

from pipeline.heads.objectives.base import Objective, check_options
from pipeline.parts.errors import InputError


class CRCL(Objective):
    """Raises the probability of pairs as far as they are trusted, and lowers that of all wrong pairs.

    p_ij = softmax of s_ij / τ over the candidates j of query i. The trust in pair i is y_i, and the loss
    mean(y_i · −log p_ii) + λ · mean(Σ_{j≠i} tan p_ij / (Σ_j tan p_ij)^(1 − y_i)), each summed over both directions. For
    y = 1 the first part is InfoNCE. For y = 0 it vanishes and the second is bounded, so a wrong pair cannot dominate.

    y = 1 in the first epochs, then y_i is the mean of p_ii of both directions; no gradient passes through it. With no
    first epochs this is the released code with `mc` off. Its self-refining labels (`mc` on), which remember y of each
    pair over epochs and train anew with them three times, are not here; the first epochs are those of `mc` on.

    `log`: "trust", the mean of y, and "negatives", one less than the batch.

    Args:
        temperature: τ. The released code has 0.05.
        weight: λ. The released code has 5.
        warmup_epochs: First epochs with y = 1. The released code has 2.
    """

    def __init__(self, temperature: float = 0.05, weight: float = 5.0, warmup_epochs: int = 2) -> None:
        super().__init__()
        check_options(temperature, "with_positive")
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
        complementary = torch.stack([_complementary(log.exp().tan(), trust) for log in logs]).sum(0)
        return active.mean() + self.weight * complementary.mean()


def _complementary(tangents: Tensor, trust: Tensor) -> Tensor:
    """[B], from tan p [B, B]."""
    wrong = tangents - tangents.diagonal().diag()
    return wrong.sum(1) / tangents.sum(1) ** (1 - trust)
