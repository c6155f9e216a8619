"""How GPO's generators see a position: fixed cosines and sines, or a learned vector for each."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pipeline.errors import InputError


class CosSinPositions(nn.Module):
    """The encoding of VSE∞ equation 4: sine in even and cosine in odd dimensions, at falling frequencies.

    Positions count from zero, as in the released code, whose checkpoints expect it.

    Raises:
        InputError: if the width is odd.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        if width < 2 or width % 2:
            raise InputError(f"cos/sin positions need an even width, got {width}")
        # No buffer: a module in half precision would round the angles.
        self.frequency = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)

    def forward(self, length: int) -> Tensor:
        """The encodings of positions 0 … length − 1: float64 [length, width], on the CPU."""
        angle = torch.arange(length).unsqueeze(1) * self.frequency
        return torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)


class IndexPositions(nn.Module):
    """A learned vector for each position ("Index" in VSE∞ B.3).

    Args:
        width: of the vectors.
        longest: how many positions there are.
    """

    def __init__(self, width: int, longest: int = 512) -> None:
        super().__init__()
        self.vectors = nn.Embedding(longest, width)

    def forward(self, length: int) -> Tensor:
        """The vectors of positions 0 … length − 1: [length, width].

        Raises:
            InputError: if there are fewer positions.
        """
        if length > self.vectors.num_embeddings:
            raise InputError(
                f"index positions know {self.vectors.num_embeddings} positions, got a set of {length}; "
                'use positions "cos_sin", which have no limit'
            )
        return self.vectors.weight[:length]
