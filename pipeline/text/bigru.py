"""The BiGRU text encoder: word embeddings and a GRU in either direction, averaged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence

from pipeline.errors import InputError
from pipeline.settings import Training
from pipeline.text.base import Words
from pipeline.text.gru import read
from pipeline.text.packing import Packing
from pipeline.text.splitting import SPLITTINGS
from pipeline.text.vocabulary import END, MASK, SPECIAL, START, UNKNOWN, Vocabulary

LONGEST = 256
"""Numbers that are read of a caption: six times the longest of Flickr8k's. A longer one makes its whole batch slow."""


class BiGRU(nn.Module):
    """Faghri et al. 2018; VSE-infinity and VSE+2AD, implementation details.

    Word embeddings are drawn from uniform(-0.1, 0.1); hidden size = dimension; the two directions are averaged.
    The directions are two GRUs, the second over each caption turned round.
    """

    pretrained = None

    def __init__(self, words: int, dimension: int, word_dimension: int = 300) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, word_dimension)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.onward = nn.GRU(word_dimension, dimension)
        self.rearward = nn.GRU(word_dimension, dimension)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """tokens [B, T] int64, lengths [B] int64 from 1 to T. Returns [B, T, dimension]; padding is zero."""
        packing = Packing.of(lengths.cpu(), tokens.shape[1]).to(tokens.device)
        numbers = tokens.flatten()[packing.places]
        if tokens.device.type == "cpu":
            different, which = numbers.unique(return_inverse=True)
            # How many steps there are depends on the data, which torch.compile cannot follow.
            reading = torch.compiler.disable(read) if torch.compiler.is_compiling() else read
            states = reading(self.onward, self.rearward, self.embedding(different), which, packing)
        else:
            states = self._read_by_torch(self.embedding(numbers), packing)
        padded = states.new_zeros(tokens.numel(), states.shape[1])
        return padded.index_copy(0, packing.places, states).view(*tokens.shape, -1)

    def _read_by_torch(self, words: torch.Tensor, packing: Packing) -> torch.Tensor:
        """What `gru.read` computes, on a GPU. words: [M, W] in the packing's order."""
        sizes = torch.tensor([step.stop - step.start for step in packing.steps])
        ahead, back = (gru(PackedSequence(each, sizes))[0].data
                       for gru, each in ((self.onward, words), (self.rearward, words[packing.turned])))
        return (ahead + back[packing.turned]) / 2


class BiGRUText:
    """Whole words, and a BiGRU that reads them. vocabulary: their numbers."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.start, self.end, self.mask = (vocabulary.number(word) for word in (START, END, MASK))
        self.others = np.arange(len(SPECIAL), len(vocabulary)) if len(vocabulary) > len(SPECIAL) \
            else np.array([self.mask])
        self.longest = LONGEST

    @classmethod
    def learn(cls, captions: Sequence[str], training: Training) -> BiGRUText:
        """The words of training.vocabulary, a file as SCAN's, or else those seen minimum_count times.

        Raises InputError where there are none.
        """
        found = (Vocabulary.of_scan(Path(training.vocabulary)) if training.vocabulary
                 else Vocabulary.of(captions, training.minimum_count))
        if len(found) == len(SPECIAL):
            raise InputError(f"vocabulary {training.vocabulary}: holds no words" if training.vocabulary else
                             f"no word is {training.minimum_count} times in the training captions: there is nothing to "
                             "learn from; lower training.NAME.minimum_count")
        return cls(found)

    @classmethod
    def load(cls, folder: Path) -> BiGRUText:
        """From vocabulary.json. Raises InputError where that is not there or damaged."""
        try:
            return cls(Vocabulary.from_json((folder / "vocabulary.json").read_text(encoding="utf-8")))
        except OSError:
            raise InputError(f"{folder}/vocabulary.json: not there; train the head again") from None

    def save(self, folder: Path) -> None:
        """Leave vocabulary.json."""
        (folder / "vocabulary.json").write_text(self.vocabulary.to_json(), encoding="utf-8")

    @property
    def digest(self) -> str:
        return self.vocabulary.digest

    @property
    def checkpoint(self) -> dict[str, Any]:
        return {}  # nothing is pretrained

    def split(self, captions: Sequence[str]) -> list[Words]:
        """A word is one number."""
        return [[[number] for number in self.vocabulary.split(caption)] for caption in captions]

    def unknown(self, caption: str) -> tuple[list[str], int]:
        """Those that are not in its vocabulary, and are all one word to the network; marks of punctuation are none."""
        words = [word for word in SPLITTINGS[self.vocabulary.splitting](caption) if any(map(str.isalnum, word))]
        return [word for word in words if self.vocabulary.number(word) == self.vocabulary.number(UNKNOWN)], len(words)

    def encoder(self, dimension: int, training: Training) -> BiGRU:
        return BiGRU(len(self.vocabulary), dimension, training.word_dimension)
