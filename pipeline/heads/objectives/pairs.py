"""Losses over the logits of right and wrong pairs."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

PairObjective: TypeAlias = Callable[[Tensor], Tensor]


def pair_cross_entropy(logits: Tensor) -> Tensor:
    """Cross-entropy of two classes, right and wrong (Geigle et al., TACL 2022, equation 1).

    Logits are float32 [B, 1 + c, 2], of a wrong and of a right pair; the first pair of each row is right.
    """
    right = torch.zeros(logits.shape[:2], dtype=torch.int64, device=logits.device)
    right[:, 0] = 1
    return cross_entropy(logits.flatten(0, 1), right.flatten())


def listwise(logits: Tensor) -> Tensor:
    """Cross-entropy of the right pair among its row (ListNet with one right candidate, Cao et al. 2007)."""
    scores = margins(logits)
    return cross_entropy(scores, scores.new_zeros(len(scores), dtype=torch.int64))


def margins(logits: Tensor) -> Tensor:
    """Compute pairs' scores [...] from logits [..., 2]. They order pairs as the probability of a right pair does."""
    return logits[..., 1] - logits[..., 0]


PAIR_OBJECTIVES: dict[str, PairObjective] = {"cross_entropy": pair_cross_entropy, "listwise": listwise}
