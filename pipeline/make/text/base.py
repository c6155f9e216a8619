"""The interface of text encoders: how captions are read, and the network that encodes what was
read.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Training


class CaptionReader(Protocol):
    """C captions as a head's text side reads them: token ids, or stored features."""

    @property
    def lengths(self) -> np.ndarray:
        """How many values each caption has, int64 [C]."""

    def read(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The token ids int64 [B, T], or vectors [B, T, width], padding 0, of rows, int64 [B]; and
        counts int64 [B].
        """

    def altered(
        self, rows: np.ndarray, share: float, rng: np.random.Generator, part: slice = slice(None)
    ) -> tuple[np.ndarray, np.ndarray]:
        """Read some captions for training, with about a share of their values changed or left out.

        Args:
            rows: Int64 [B], which of the C.
            share: The share.
            rng: Draws for all rows, whichever are returned.
            part: Which of the rows are returned.

        Returns:
            See `read`.
        """

    def unknown(self) -> np.ndarray:
        """The unknown words and all words of each caption, int64 [C, 2]."""


class Text(Protocol):
    """A text encoder: captions of words (`tokens.TokenText`), or of features
    (`features.FeatureText`).
    """

    @classmethod
    def load(cls, folder: Path) -> "Text":
        """The text encoder that `save` wrote into a folder; InputError if that is missing or
        damaged.
        """

    def save(self, folder: Path) -> None:
        """Write into a folder all that is needed to read captions without other files."""

    @property
    def digest(self) -> str:
        """SHA-256 over all that the values of captions, and a pretrained network's initial weights,
        depend on.
        """

    @property
    def checkpoint(self) -> dict[str, Any]:
        """The origin and sizes of a pretrained network; {} without one."""

    def captions(self, texts: Collection[str], ids: np.ndarray | None = None) -> CaptionReader:
        """The reader of C texts, as in a manifest with these ids (int64 [C]); None for captions of
        no manifest.
        """

    def unknown(self, caption: str) -> tuple[list[str], int]:
        """The unknown words of a caption, and the number of all its words."""

    def encoder(self, dimension: int, training: Training) -> nn.Module:
        """The network that encodes captions into a joint space of this dimension, by the settings
        of training.

        Its attribute `pretrained`, a module or None, is the part that learns at the recipe's
        text_multiplier.

        Returns:
            A module (values [B, T] or [B, T, width], counts [B] int64) -> [B, T, dimension]. Padded
            values are unspecified.
        """


def with_dropout(encoder: nn.Module, share: float) -> nn.Module:
    """The encoder, with this share of dropout of its word vectors in training; InputError if it has
    no word vectors.
    """
    if share:
        if not hasattr(encoder, "dropout"):
            raise InputError(
                "the recipe's dropout is for word vectors, which only the text encoder bigru has; use "
                "--text bigru, or set dropout to 0"
            )
        encoder.dropout = share  # type: ignore[assignment]  # of a Module mypy expects modules
    return encoder


class LinearProjection(nn.Module):
    """One linear layer, for grid and patch features and for BERT's tokens (VSE+2AD eq. 1)."""

    pretrained = None

    def __init__(self, width: int, dimension: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, dimension)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, items: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """Project items [B, N, width]: [B, N, dimension]. Padded values are unspecified."""
        if not torch.is_autocast_enabled(items.device.type):
            items = items.to(self.linear.weight.dtype)
        return self.linear(items)
