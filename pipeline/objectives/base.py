"""What every objective shares: checks, precision, the log."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pipeline.errors import InputError


class Objective(nn.Module):
    """From a batch's similarity matrix to a scalar loss.

    A subclass writes `loss`. After a call, `log` holds what the objective wants logged for that step.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log: dict[str, float] = {}

    def start_epoch(self, epoch: int) -> None:
        """Told by the training loop before each epoch, counted from 0. Objectives with a schedule use it."""

    def forward(self, similarity: Tensor, same_image: Tensor | None = None) -> Tensor:
        """The loss of one batch, in float32 also under autocast (float64 stays).

        Args:
            similarity: [B, B], cosine similarity of image (row) and caption (column); pairs on the diagonal.
            same_image: bool [B, B], True where row and column come from one image, the diagonal included;
                such pairs are no negatives. None: all but the diagonal are negatives, as in the papers.

        Returns:
            a scalar.

        Raises:
            InputError: for other shapes or dtypes.
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

    def loss(self, similarity: Tensor, negatives: Tensor) -> Tensor:
        """Similarity, float [B, B], and negatives, bool [B, B] (True where a pair is one), to a scalar."""
        raise NotImplementedError
