"""The tokens of a pretrained text network: CLIP's, SigLIP's, any of `transformers` or
sentence-transformers.

It is trained with the head at the recipe's `text_multiplier` of the learning rate, or frozen where
that is 0. Vectors of a frozen one can be computed once, by the engine `text-tower`, and read by the
text encoder `features`.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import nn

from pipeline.foundation.settings import Training
from pipeline.make.features.extractors.tower import TextTower, TokenVectors
from pipeline.make.text.base import LinearProjection
from pipeline.make.text.options import TowerTextOptions
from pipeline.make.text.tokens import TokenText, Words

WORD = "▁"  # how SentencePiece marks the first piece of a word


class TowerEncoder(TokenVectors):
    """A pretrained network, and a linear layer from its tokens to the joint space.

    All tokens count, including the first and the last; the pooling chooses among them.
    """

    def __init__(
        self, pretrained: nn.Module, padded: tuple[int, int] | None, width: int, dimension: int
    ) -> None:
        super().__init__(pretrained, padded)
        self.linear = LinearProjection(width, dimension)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Encode captions, int64 [B, T] of lengths [B]: [B, T, dimension]. Padded values are
        unspecified.
        """
        return self.linear(super().forward(tokens, lengths), lengths)


class TowerText(TextTower, TokenText):
    """A text network and its tokenizer, whose word pieces augmentation changes by whole words."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        tokenizer = self.tokenizer
        self.mask = tokenizer.mask_token_id
        special = {*tokenizer.all_special_ids}  # computed at each look
        others = []
        for piece, number in tokenizer.get_vocab().items():
            # [PAD], <s>, [unused12] and the like stand for no text.
            is_bracketed = piece.startswith("[") and piece.endswith("]")
            if not is_bracketed and number not in special:
                others.append(number)
        self.others = np.array(sorted(others))
        # Gemma's tokenizer takes a caption for one word.
        self._knows_words = False
        if tokenizer.is_fast:
            words = {*tokenizer("a b").word_ids()} - {None}
            self._knows_words = len(words) > 1

    @classmethod
    def learn(  # type: ignore[override]  # and options
        cls,
        captions: Iterable[str],
        training: Training,
        options: TowerTextOptions,
    ) -> "TowerText":
        """Load the checkpoint that the options name."""
        return cls.of(options.weights, "set training.NAME.texts.tokens.weights to the folder")

    def split(self, captions: Sequence[str]) -> list[Words]:
        """Convert captions to token ids. A word has one or more, as the tokenizer splits it."""
        encoded = self.tokenizer(self.read(captions), add_special_tokens=False)
        captions_words: list[Words] = []
        for row, numbers in enumerate(encoded["input_ids"]):
            if self._knows_words:
                words = encoded.word_ids(row)
            else:
                pieces = self.tokenizer.convert_ids_to_tokens(numbers)
                words = np.cumsum([piece.startswith(WORD) for piece in pieces]).tolist()
            numbers_of_word: dict[int | None, list[int]] = {}
            for number, word in zip(numbers, words, strict=True):
                numbers_of_word.setdefault(word, []).append(number)
            captions_words.append(list(numbers_of_word.values()))
        return captions_words

    def unknown(self, caption: str) -> tuple[list[str], int]:
        """Find words without word pieces, such as those in an unknown script."""
        words = caption.split()
        unknown = []
        for word, parts in zip(words, self.split(words), strict=True):
            if {*chain(*parts)} <= {self.unknown_token}:
                unknown.append(word)
        return unknown, len(words)

    def encoder(self, dimension: int, training: Training) -> TowerEncoder:
        """Build the text encoder's network, see `TextTower.network`, with a projection to the joint
        space.
        """
        return TowerEncoder(self.network(), self.padded, self.config.hidden_size, dimension)
