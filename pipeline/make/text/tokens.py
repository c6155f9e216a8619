"""Captions as token ids: the base class of text encoders that read words, and caption
augmentation.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import Self

import numpy as np

from pipeline.foundation.parts.errors import InputWarning
from pipeline.foundation.settings import Training
from pipeline.make.text.base import Text

# A caption's words in order, each as the token ids of its pieces: one id, where words are not cut.
Words = list[list[int]]


class TokenText(Text, ABC):
    """A text encoder with a vocabulary of words or word pieces."""

    before: list[int]  # the token ids before a caption
    after: list[int]  # the token ids after a caption
    mask: int | None  # the token id that hides a piece; None where there is none
    unknown_token: int  # the token id of what it does not know; -1 where there is none
    others: np.ndarray  # int64 [R], token ids that may replace a piece in caption augmentation
    longest: int  # the most token ids of a caption

    @classmethod
    @abstractmethod
    def learn(cls, captions: Iterable[str], training: Training) -> Self:
        """The text encoder with the vocabulary of the training captions, or the one that the
        settings of training name.

        One that declares options receives them, checked, as a third argument.

        Raises:
            InputError: If the named files are missing.
        """

    @abstractmethod
    def split(self, captions: Sequence[str]) -> list[Words]:
        """The words of some captions as token ids, without start and end."""

    def captions(self, texts: Collection[str], ids: np.ndarray | None = None) -> "Tokens":
        """Convert captions to token ids when they are read, see `Text.captions`."""
        return Tokens(self, texts)


class Tokens:
    """The token ids of C captions."""

    def __init__(self, text: TokenText, texts: Collection[str]) -> None:
        self.text = text
        if not isinstance(texts, np.ndarray):
            texts = np.array(list(texts), np.dtypes.StringDType())
        self._texts = texts

    @cached_property
    def numbers(self) -> list[list[int]]:
        """The token ids of each caption, see `encode`."""
        return encode(self.text, self._texts)

    @cached_property
    def lengths(self) -> np.ndarray:
        """The token ids of each caption, int64 [C]."""
        return np.array([len(caption) for caption in self.numbers], np.int64)

    def read(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read token ids [B, T] and lengths [B], see `CaptionReader.read`."""
        return pad([self.numbers[row] for row in rows.tolist()])

    def altered(
        self, rows: np.ndarray, share: float, rng: np.random.Generator, part: slice = slice(None)
    ) -> tuple[np.ndarray, np.ndarray]:
        """Read token ids, some of the words changed by `augment`, see `CaptionReader.altered`."""
        captions = self.text.split(self._texts[rows].tolist())
        augmented = [augment(words, share, self.text, rng) for words in captions]
        return pad([assemble(self.text, words) for words in augmented[part]])

    def unknown(self) -> np.ndarray:
        """Count unknown words and all words, int64 [C, 2].

        Punctuation marks count as words, and word pieces where the encoder has these; start and end
        do not.
        """
        captions = len(self.lengths)
        total = int(self.lengths.sum())
        flat = np.fromiter(chain.from_iterable(self.numbers), np.int64, total)
        owner = np.repeat(np.arange(captions), self.lengths)
        is_unknown = flat == self.text.unknown_token
        unknown = np.bincount(owner[is_unknown], minlength=captions)
        around = len(self.text.before) + len(self.text.after)
        return np.stack([unknown, self.lengths - around], axis=1)


def pad(captions: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Pad captions' token ids with 0 to the same length: int64 [B, T], and their lengths [B]."""
    lengths = np.array([len(caption) for caption in captions], np.int64)
    longest = lengths.max(initial=0)
    tokens = np.zeros((len(captions), longest), np.int64)
    present = np.arange(longest) < lengths[:, None]
    tokens[present] = np.fromiter(chain.from_iterable(captions), np.int64)
    return tokens, lengths


def encode(text: TokenText, captions: Iterable[str]) -> list[list[int]]:
    """The token ids of captions by a text encoder: start, the pieces of the words, end. Long
    captions are cut.
    """
    return [assemble(text, words) for words in text.split(list(captions))]


def assemble(text: TokenText, words: Words) -> list[int]:
    """Convert one caption's words to its token ids. A long caption is cut, with a warning."""
    inner = list(chain.from_iterable(words))
    room = text.longest - len(text.before) - len(text.after)
    if len(inner) > room:
        warnings.warn(
            f"captions of more than {room} words or word pieces are cut to that length",
            InputWarning,
            stacklevel=1,
        )
    return [*text.before, *inner[:room], *text.after]


# Of the chosen words: 50 % masked, 10 % replaced at random, 40 % dropped
MASKED = 0.5
REPLACED = 0.6


def augment(words: Words, share: float, text: TokenText, rng: np.random.Generator) -> Words:
    """Change some of a caption's words, as the released code of VSE∞ and VSE+2AD does.

    A word that is cut into pieces is masked or dropped as a whole, and replaced piece by piece,
    each by a random piece. Without a token id that hides a piece, what would be masked is dropped.
    One word remains if there was one.
    """
    if share == 0:
        return words
    chosen = rng.random(len(words)) < share
    fate = rng.random(len(words))
    augmented = []
    for word, change, luck in zip(words, chosen, fate, strict=True):
        if not change:
            augmented.append(word)
        elif luck < MASKED:
            if text.mask is not None:
                augmented.append([text.mask] * len(word))
        elif luck < REPLACED:
            augmented.append(rng.choice(text.others, len(word)).tolist())
    return augmented or words[:1]
