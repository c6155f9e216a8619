"""The base class of objectives, which checks shapes, sets the precision and holds the log; InfoNCE that they share."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from pipeline.parts.errors import InputError


class Objective(nn.Module, ABC):
    """A loss over a batch's similarity matrix.

    A subclass implements `loss`. After a call, `log` holds the values to be logged for that step.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log: dict[str, float] = {}

    def start_epoch(self, epoch: int) -> None:
        """Prepare for an epoch. The training loop calls it before each one; objectives with a schedule override it.

        Args:
            epoch: The epoch, counted from 0.
        """

    def forward(self, similarity: Tensor, same_image: Tensor | None = None) -> Tensor:
        """Compute the loss of one batch, in float32 also under autocast (float64 stays).

        Args:
            similarity: Float [B, B], cosine similarity of image (row) and caption (column); positives on the diagonal.
            same_image: Bool [B, B], True where row and column belong to one image, the diagonal included; such pairs
                are not used as negatives. None: every pair off the diagonal is a negative, as in the papers.

        Returns:
            A scalar.

        Raises:
            InputError: For other shapes or dtypes.
        """
        shape = list(similarity.shape)
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0 or not similarity.is_floating_point():
            raise InputError(f"similarity must be floating point [B, B], got {similarity.dtype} {shape}")
        positives = torch.eye(shape[0], dtype=torch.bool, device=similarity.device)
        if same_image is not None:
            if list(same_image.shape) != shape or same_image.dtype != torch.bool:
                raise InputError(
                    f"same_image must be bool {shape} like the similarity, "
                    f"got {same_image.dtype} {list(same_image.shape)}"
                )
            positives = positives | same_image.to(similarity.device)
        with torch.autocast(similarity.device.type, enabled=False):
            working = similarity.to(torch.promote_types(similarity.dtype, torch.float32))
            return self.loss(working, ~positives)

    @abstractmethod
    def loss(self, similarity: Tensor, negatives: Tensor) -> Tensor:
        """Compute the loss from checked inputs. Subclasses implement it.

        Args:
            similarity: Float32 or float64 [B, B].
            negatives: Bool [B, B], True where a pair is a negative.

        Returns:
            A scalar.
        """


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
