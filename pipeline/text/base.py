"""The interface of text encoders, from captions to token ids and the network that reads them, and what they share."""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from pipeline.parts.errors import InputError, InputWarning
from pipeline.settings import Training

# A caption's words in order, each as the token ids of its pieces: one id, where words are not cut.
Words = list[list[int]]


class Text(Protocol):
    """A text encoder with its vocabulary."""

    start: int  # the token id before a caption
    end: int  # the token id after a caption
    mask: int  # the token id that hides a piece
    unknown_token: int  # the token id of what it does not know
    others: np.ndarray  # int64 [R], token ids that may replace a piece in caption augmentation
    longest: int  # the most token ids of a caption

    @classmethod
    def learn(cls, captions: Iterable[str], training: Training) -> "Text":
        """Learn a vocabulary from the training captions, or load the one that the settings name.

        Args:
            captions: The training captions.
            training: The settings.

        Returns:
            The text encoder with its vocabulary.

        Raises:
            InputError: If the named files are missing.
        """

    @classmethod
    def load(cls, folder: Path) -> "Text":
        """Load what `save` wrote.

        Args:
            folder: A head's folder of text.

        Returns:
            The text encoder with its vocabulary.

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
        """SHA-256 over all that the token ids, and a pretrained network's initial weights, depend on."""

    @property
    def checkpoint(self) -> dict[str, Any]:
        """The origin and sizes of a pretrained network; {} without one."""

    def split(self, captions: Sequence[str]) -> list[Words]:
        """Convert captions to token ids, word by word.

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
    """Set an encoder's dropout of word vectors in training.

    Args:
        encoder: The encoder.
        share: The dropout rate.

    Returns:
        The encoder.

    Raises:
        InputError: If it has no word vectors.
    """
    if share:
        if not hasattr(encoder, "dropout"):
            raise InputError("the recipe's dropout is for word vectors, which only the text encoder bigru has; use "
                             "--text bigru, or set dropout to 0")
        encoder.dropout = share  # type: ignore[assignment]  # of a Module mypy expects modules
    return encoder


def encode(text: Text, captions: Iterable[str]) -> list[list[int]]:
    """Convert captions to token ids: start, the pieces of the words, end. Long captions are cut.

    Args:
        text: The text encoder.
        captions: The captions.

    Returns:
        The token ids of each.
    """
    return [assemble(text, words) for words in text.split(list(captions))]


def assemble(text: Text, words: Words) -> list[int]:
    """Convert one caption's words to its token ids. A long caption is cut, with a warning."""
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


MASKED, REPLACED = 0.5, 0.6  # of the chosen words: 50 % masked, 10 % replaced at random, 40 % dropped


def augment(words: Words, share: float, text: Text, rng: np.random.Generator) -> Words:
    """Change some of a caption's words, as the released code of VSE∞ and VSE+2AD does.

    A word that is cut into pieces is masked or dropped as a whole, and replaced piece by piece, each by a random
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
