"""The interface of a kind of text, captions as numbers and the network that encodes them, and what kinds share."""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from pipeline.parts.errors import InputError, InputWarning
from pipeline.settings import Training

# A caption's words in order, each as the numbers of its pieces: one, where words are not cut.
Words = list[list[int]]


class Text(Protocol):
    """A kind of text encoder with its words."""

    start: int  # the number before a caption
    end: int  # the number after a caption
    mask: int  # the number that hides a piece
    others: np.ndarray  # int64 [R], numbers that may replace a piece in caption augmentation
    longest: int  # the most numbers of a caption

    @classmethod
    def learn(cls, captions: Iterable[str], training: Training) -> "Text":
        """Learn words from the training captions, or load those that the settings name.

        Args:
            captions: The training captions.
            training: The settings.

        Returns:
            The kind of text with its words.

        Raises:
            InputError: If the named files are missing.
        """

    @classmethod
    def load(cls, folder: Path) -> "Text":
        """Load what `save` left.

        Args:
            folder: A head's folder of text.

        Returns:
            The kind of text with its words.

        Raises:
            InputError: If that is missing or damaged.
        """

    def save(self, folder: Path) -> None:
        """Write all that is needed to read captions without other files.

        Args:
            folder: A head's folder of text.
        """

    @property
    def digest(self) -> str:
        """SHA-256 over all that the numbers, and a pretrained network's first weights, depend on."""

    @property
    def checkpoint(self) -> dict[str, Any]:
        """The origin and sizes of a pretrained network; {} without one."""

    def split(self, captions: Sequence[str]) -> list[Words]:
        """Convert captions to numbers, word by word.

        Args:
            captions: As in a manifest.

        Returns:
            Each caption's words, without start and end.
        """

    def unknown(self, caption: str) -> tuple[list[str], int]:
        """Find a caption's unknown words.

        Args:
            caption: As in a manifest.

        Returns:
            The unknown words, and the number of all words.
        """

    def encoder(self, dimension: int, training: Training) -> nn.Module:
        """Build the network that encodes captions.

        Its attribute `pretrained`, a module or None, is the part that learns at the recipe's text_multiplier.

        Args:
            dimension: d of the joint space.
            training: The settings.

        Returns:
            A module (tokens [B, T] int64, lengths [B] int64) -> [B, T, dimension]. Padded values are unspecified.
        """


def with_dropout(encoder: nn.Module, share: float) -> nn.Module:
    """Let an encoder leave out components of word vectors in training.

    Args:
        encoder: The encoder.
        share: Which share of the components is left out.

    Returns:
        The encoder.

    Raises:
        InputError: If it has no word vectors.
    """
    if share:
        if not hasattr(encoder, "dropout"):
            raise InputError("the recipe's dropout is of word vectors, which the text encoder bigru has; choose it, or "
                             "set dropout to 0")
        encoder.dropout = share  # type: ignore[assignment]  # of a Module mypy expects modules
    return encoder


def encode(text: Text, captions: Iterable[str]) -> list[list[int]]:
    """Convert captions to numbers: start, the pieces of the words, end. Long captions are cut.

    Args:
        text: The words.
        captions: The captions.

    Returns:
        The numbers of each.
    """
    return [assemble(text, words) for words in text.split(list(captions))]


def assemble(text: Text, words: Words) -> list[int]:
    """Convert one caption's words to its numbers. A long caption is cut, with a warning."""
    inner, room = [piece for word in words for piece in word], text.longest - 2
    if len(inner) > room:
        warnings.warn(f"captions of more than {room} words or word pieces are cut there", InputWarning, stacklevel=1)
    return [text.start, *inner[:room], text.end]


class LinearProjection(nn.Module):
    """One linear layer, for grid and patch features and for BERT's tokens (VSE+2AD eq. 1)."""

    def __init__(self, width: int, dimension: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, dimension)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, items: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """Project items [B, N, width]: [B, N, dimension]. Padded values are unspecified."""
        autocast = torch.is_autocast_enabled(items.device.type)
        return self.linear(items if autocast else items.to(self.linear.weight.dtype))


MASKED, REPLACED = 0.5, 0.6  # of the chosen words: 50 % masked, 10 % replaced by anything, 40 % dropped


def augment(words: Words, share: float, text: Text, rng: np.random.Generator) -> Words:
    """Change some of a caption's words, as the released code of VSE∞ and VSE+2AD does.

    A word that is cut into pieces is masked or dropped as a whole, and replaced piece by piece, each by any other
    piece. One word remains if there was one.
    """
    if share == 0:
        return words
    chosen = rng.random(len(words)) < share
    fate = rng.random(len(words))
    kept = []
    for word, change, luck in zip(words, chosen, fate, strict=True):
        if not change:
            kept.append(word)
        elif luck < MASKED:
            kept.append([text.mask] * len(word))
        elif luck < REPLACED:
            kept.append(rng.choice(text.others, len(word)).tolist())
    return kept or words[:1]
