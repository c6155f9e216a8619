"""InfoNCE over each query's K hardest negatives: the loss that several objectives share."""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.errors import InputError

DENOMINATORS = ("with_positive", "printed")


def check_options(temperature: float, denominator: str, margin: float = 0.0) -> None:
    """Check the options that objectives over the hardest negatives share."""
    if not temperature > 0:
        raise InputError(f"the temperature must be positive, got {temperature}")
    if denominator not in DENOMINATORS:
        raise InputError(f"denominator must be one of {', '.join(DENOMINATORS)}, got {denominator!r}")
    if not 0 <= margin < float("inf"):
        raise InputError(f"the margin must be a number of at least 0, got {margin}")
    if margin and denominator == "printed":
        raise InputError("a margin does nothing with the printed denominator; leave one of the two out")


def hardest_infonce(
    similarity: Tensor,
    negatives: Tensor,
    hardest: int,
    temperature: float,
    denominator: str = "with_positive",
    margin: float = 0.0,
) -> Tensor:
    """InfoNCE in both directions, each a mean over the batch, summed (VSE+2AD 3.3).

    Only the K hardest negatives of each query, in 0..B, enter the loss and receive a gradient. A query with fewer uses
    all of them; one without any adds 0. The denominator is "with_positive", or "printed": the K negatives alone. The
    margin is taken off every positive similarity.
    """
    logits = similarity / temperature
    positive = logits.diagonal() - margin / temperature
    return one_direction(logits, positive, negatives, hardest, denominator) + one_direction(
        logits.T, positive, negatives.T, hardest, denominator
    )


def one_direction(logits: Tensor, positive: Tensor, negatives: Tensor, hardest: int, denominator: str) -> Tensor:
    """InfoNCE with the rows of logits [B, B], similarities divided by the temperature, as queries."""
    hard = logits.masked_fill(~negatives, float("-inf"))
    if hardest < len(logits) - 1:
        hard = hard.topk(hardest, dim=1, sorted=False).values
    if denominator == "with_positive":
        return (torch.cat([positive.unsqueeze(1), hard], dim=1).logsumexp(1) - positive).mean()
    # Without a negative the sum is empty: such a row would give -inf, and NaN gradients.
    has_negatives = negatives.any(1)
    cost = torch.where(has_negatives.unsqueeze(1), hard, 0.0).logsumexp(1) - positive
    return torch.where(has_negatives, cost, 0.0).mean()
