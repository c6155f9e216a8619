"""The base class of objectives, which checks shapes, sets the precision and holds the log."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from pipeline.foundation.parts.errors import InputError


class Objective(nn.Module, ABC):
    """A loss over a batch's similarity matrix.

    A subclass implements `loss`. After a call, `log` holds the values to be logged for that step.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log: dict[str, float] = {}

    def start_epoch(self, epoch: int) -> None:
        """Prepare for an epoch, from 0; objectives with a schedule override it."""

    def require(self, dimension: int | None) -> None:
        """Refuse a head that the objective cannot train, as an InputError; those that read vectors
        override it.

        dimension: d of the head's vectors; None if it has none.
        """

    def of_vectors(
        self, images: Tensor, captions: Tensor, similarity: Tensor, same_image: Tensor | None
    ) -> Tensor:
        """Compute the loss of one batch as `forward`; objectives that read vectors override it.

        Args:
            images: Unit vectors, float [B, d].
            captions: Likewise.
            similarity: Their products [B, B].
            same_image: See `forward`.

        Returns:
            A scalar.
        """
        loss: Tensor = self(similarity, same_image)
        return loss

    def forward(self, similarity: Tensor, same_image: Tensor | None = None) -> Tensor:
        """Compute the loss of one batch, in float32 also under autocast (float64 stays).

        Args:
            similarity: Float [B, B], cosine similarity of image (row) and caption (column);
                positives on the diagonal.
            same_image: Bool [B, B], True where row and column belong to one image, the diagonal
                included; such pairs are not used as negatives. None: every pair off the diagonal is
                a negative, as in the papers.

        Returns:
            A scalar.

        Raises:
            InputError: For other shapes or dtypes.
        """
        shape = list(similarity.shape)
        is_square = len(shape) == 2 and shape[0] == shape[1] and shape[0] > 0
        if not is_square or not similarity.is_floating_point():
            raise InputError(
                f"similarity must be floating point [B, B], got {similarity.dtype} {shape}"
            )
        positives = torch.eye(shape[0], dtype=torch.bool, device=similarity.device)
        if same_image is not None:
            if list(same_image.shape) != shape or same_image.dtype != torch.bool:
                raise InputError(
                    f"same_image must be bool {shape} like the similarity, got {same_image.dtype} "
                    f"{list(same_image.shape)}"
                )
            positives = positives | same_image.to(similarity.device)
        with torch.autocast(similarity.device.type, enabled=False):
            working = similarity.to(torch.promote_types(similarity.dtype, torch.float32))
            return self.loss(working, ~positives)

    @abstractmethod
    def loss(self, similarity: Tensor, negatives: Tensor) -> Tensor:
        """The loss, a scalar, of checked similarity [B, B] and negatives (bool [B, B]). Subclasses
        implement it.
        """
