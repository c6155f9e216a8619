"""InfoNCE over each query's K hardest negatives: the loss that several objectives share."""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.errors import InputError

DENOMINATORS = ("with_positive", "printed")


def check_contrast(temperature: float, denominator: str, margin: float = 0.0) -> None:
    """Raise InputError for a temperature that is not positive, an unknown denominator, or a margin below 0."""
    if not temperature > 0:
        raise InputError(f"the temperature must be positive, got {temperature}")
    if denominator not in DENOMINATORS:
        raise InputError(f"denominator must be one of {', '.join(DENOMINATORS)}, got {denominator!r}")
    if not 0 <= margin < float("inf"):
        raise InputError(f"the margin must be a number of at least 0, got {margin}")
    if margin and denominator == "printed":
        raise InputError("a margin does nothing with the printed denominator; leave one of the two out")


def hardest_contrast(
    similarity: Tensor,
    negatives: Tensor,
    hardest: int,
    temperature: float,
    denominator: str = "with_positive",
    margin: float = 0.0,
) -> Tensor:
    """The sum of both directions' InfoNCE, each a mean over the batch (VSE+2AD 3.3).

    Args:
        similarity: [B, B], float; image × caption, positives on the diagonal.
        negatives: bool [B, B], True where a pair is a negative. A query with fewer than K uses those it has;
            a query with none costs nothing.
        hardest: K, in 0..B.
        temperature: τ.
        denominator: "with_positive": the positive and the K negatives. "printed": the K negatives alone.
        margin: by how much a positive must be above a negative to count as much as one that equals it does without.

    Returns:
        a scalar.
    """
    logits = similarity / temperature
    positive = logits.diagonal() - margin / temperature
    return one_direction(logits, positive, negatives, hardest, denominator) + one_direction(
        logits.T, positive, negatives.T, hardest, denominator
    )


def one_direction(logits: Tensor, positive: Tensor, negatives: Tensor, hardest: int, denominator: str) -> Tensor:
    """InfoNCE with the rows as queries and `positive` [B] as the logits of their positives: a scalar."""
    hard = logits.masked_fill(~negatives, float("-inf"))
    if hardest < len(logits) - 1:
        hard = hard.topk(hardest, dim=1, sorted=False).values
    if denominator == "with_positive":
        return (torch.cat([positive.unsqueeze(1), hard], dim=1).logsumexp(1) - positive).mean()
    # Without a negative the sum is empty: such a row would give -inf, and NaN gradients.
    has_negatives = negatives.any(1)
    cost = torch.where(has_negatives.unsqueeze(1), hard, 0.0).logsumexp(1) - positive
    return torch.where(has_negatives, cost, 0.0).mean()
