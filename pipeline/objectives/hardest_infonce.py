"""InfoNCE over each query's K hardest negatives: the loss that several objectives share."""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.errors import InputError

DENOMINATORS = ("with_positive", "printed")


def check_options(temperature: float, denominator: str, margin: float = 0.0) -> None:
    """Check the options that objectives over the hardest negatives share.

    Args:
        temperature: τ.
        denominator: One of `DENOMINATORS`.
        margin: Taken off every positive similarity.

    Raises:
        InputError: For a temperature that is not positive, an unknown denominator, a margin below 0, or a margin with
            the printed denominator.
    """
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

    Only the K hardest negatives of each query enter the loss and receive a gradient.

    Args:
        similarity: Float [B, B]; image × caption, positives on the diagonal.
        negatives: Bool [B, B], True where a pair is a negative. A query with fewer than K negatives uses all of them;
            a query without any adds 0 to the loss.
        hardest: K, in 0..B.
        temperature: τ.
        denominator: "with_positive": the positive and the K negatives. "printed": the K negatives alone.
        margin: Taken off every positive similarity.

    Returns:
        A scalar.
    """
    logits = similarity / temperature
    positive = logits.diagonal() - margin / temperature
    return one_direction(logits, positive, negatives, hardest, denominator) + one_direction(
        logits.T, positive, negatives.T, hardest, denominator
    )


def one_direction(logits: Tensor, positive: Tensor, negatives: Tensor, hardest: int, denominator: str) -> Tensor:
    """InfoNCE with the rows as queries.

    Args:
        logits: Float [B, B], similarities divided by the temperature.
        positive: Float [B], the logits of the positives.
        negatives: Bool [B, B], True where a pair is a negative.
        hardest: K.
        denominator: One of `DENOMINATORS`.

    Returns:
        A scalar, the mean over the queries.
    """
    hard = logits.masked_fill(~negatives, float("-inf"))
    if hardest < len(logits) - 1:
        hard = hard.topk(hardest, dim=1, sorted=False).values
    if denominator == "with_positive":
        return (torch.cat([positive.unsqueeze(1), hard], dim=1).logsumexp(1) - positive).mean()
    # Without a negative the sum is empty: such a row would give -inf, and NaN gradients.
    has_negatives = negatives.any(1)
    cost = torch.where(has_negatives.unsqueeze(1), hard, 0.0).logsumexp(1) - positive
    return torch.where(has_negatives, cost, 0.0).mean()
