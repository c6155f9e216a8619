"""What every kind of text offers: captions as numbers, and the network that makes one vector of each."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from torch import nn

from pipeline.errors import InputWarning
from pipeline.settings import Training

Words = list[list[int]]
"""A caption's words in order, each as the numbers of its pieces: one, where words are not cut."""


class Text(Protocol):
    """A kind of text encoder with its words.

    start, end: the numbers before and after a caption. mask: the number that hides a piece. others: int64 [R], numbers
    that may stand for another piece in caption augmentation. longest: how many numbers a caption may have. digest:
    SHA-256 over all that the numbers, and a pretrained network's first weights, depend on. checkpoint: of a pretrained
    network, where it came from and its sizes; {} where there is none.
    """

    start: int
    end: int
    mask: int
    others: np.ndarray
    longest: int

    @classmethod
    def learn(cls, captions: Sequence[str], training: Training) -> Text:
        """From the training captions, or what the settings name. Raises InputError where that is not there."""
        ...

    @classmethod
    def load(cls, folder: Path) -> Text:
        """From what `save` left. Raises InputError where that is not there or damaged."""
        ...

    def save(self, folder: Path) -> None:
        """Leave in a head's folder what its captions need, so that it is used without anything else."""
        ...

    @property
    def digest(self) -> str: ...

    @property
    def checkpoint(self) -> dict[str, Any]: ...

    def split(self, captions: Sequence[str]) -> list[Words]:
        """Each caption's words as numbers, without start and end."""
        ...

    def unknown(self, caption: str) -> tuple[list[str], int]:
        """The words of a caption that it does not know, and how many words the caption has."""
        ...

    def encoder(self, dimension: int, training: Training) -> nn.Module:
        """A network (tokens [B, T] int64, lengths [B] int64) -> [B, T, dimension], whose padding is whatever it is.

        Its attribute `pretrained`, a module or None, is the part that learns at the recipe's text_multiplier.
        """
        ...


def encode(text: Text, captions: Sequence[str]) -> list[list[int]]:
    """Captions as numbers: start, the pieces of the words, end; cut where they are too long."""
    return [assemble(text, words) for words in text.split(captions)]


def assemble(text: Text, words: Words) -> list[int]:
    """One caption's numbers from its words', cut with a warning where they are too many."""
    inner, room = [piece for word in words for piece in word], text.longest - 2
    if len(inner) > room:
        warnings.warn(f"captions of more than {room} words or word pieces are cut there", InputWarning, stacklevel=1)
    return [text.start, *inner[:room], text.end]
