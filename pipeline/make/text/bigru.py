"""The BiGRU text encoder: word embeddings and a GRU in either direction, averaged."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import dropout
from torch.nn.utils.rnn import PackedSequence

from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.foundation.settings import Training
from pipeline.make.text.gru import Packing, bidirectional_states, states_in_graph
from pipeline.make.text.tokens import TokenText, Words
from pipeline.make.text.vocabulary import (
    END,
    MASK,
    SPECIAL,
    START,
    UNKNOWN,
    Vocabulary,
    WordVectors,
    read_vectors,
)

# Token ids that are read of a caption, six times as many as Flickr8k's longest has. A longer one
# slows its whole batch.
LONGEST = 256


class BiGRU(nn.Module):
    """The text encoder of VSE++ (Faghri et al. 2018), VSE∞ and VSE+2AD.

    Word embeddings are drawn from uniform(-0.1, 0.1); the hidden size is d; the two directions are
    averaged. The directions are two GRUs, the second over each caption in reverse.
    """

    pretrained = None
    dropout: float = 0.0

    def __init__(self, words: int, dimension: int, word_dimension: int = 300) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, word_dimension)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.onward = nn.GRU(word_dimension, dimension)
        self.rearward = nn.GRU(word_dimension, dimension)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Encode captions, int64 [B, T] of lengths [B]: [B, T, dimension], padding zero."""
        if torch.compiler.is_exporting():
            directions = [self.onward, self.rearward]
            return states_in_graph(directions, self.embedding(tokens), lengths).mean(2)
        packing = Packing.of(lengths.cpu(), tokens.shape[1])
        packing = packing.to(tokens.device)
        numbers = tokens.flatten()[packing.places]
        if tokens.device.type == "cpu":
            states = self._read_on_cpu(numbers, packing)
        else:
            words = dropout(self.embedding(numbers), self.dropout, self.training)
            states = self._read_by_torch(words, packing)
        padded = states.new_zeros(tokens.numel(), states.shape[1])
        padded.index_copy_(0, packing.places, states)
        return padded.view(*tokens.shape, -1)

    def _read_on_cpu(self, numbers: torch.Tensor, packing: Packing) -> torch.Tensor:
        words, which = self._vectors(numbers)
        reading = bidirectional_states
        if torch.compiler.is_compiling():
            # How many steps there are depends on the data, which torch.compile cannot follow.
            reading = torch.compiler.disable(bidirectional_states)
        return reading(self.onward, self.rearward, words, which, packing)

    def _vectors(self, numbers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Vectors [U, W], and the row of each token id [M]: one row for each word, or with dropout
        for each id.
        """
        if self.training and self.dropout:
            words = dropout(self.embedding(numbers), self.dropout)
            return words, torch.arange(len(numbers))
        different, which = numbers.unique(return_inverse=True)
        return self.embedding(different), which

    def _read_by_torch(self, words: torch.Tensor, packing: Packing) -> torch.Tensor:
        """Compute the same as `gru.bidirectional_states` on a GPU, from words [M, W] in the
        packing's order.
        """
        sizes = torch.tensor([step.stop - step.start for step in packing.steps])
        ahead, _ = self.onward(PackedSequence(words, sizes))
        back, _ = self.rearward(PackedSequence(words[packing.turned], sizes))
        return (ahead.data + back.data[packing.turned]) / 2


class BiGRUText(TokenText):
    """Whole words, and a BiGRU that reads them."""

    def __init__(self, vocabulary: Vocabulary, vectors: WordVectors | None = None) -> None:
        self.vocabulary = vocabulary
        self.vectors = vectors
        self.before = [vocabulary.number(START)]
        self.after = [vocabulary.number(END)]
        self.mask = vocabulary.number(MASK)
        self.unknown_token = vocabulary.number(UNKNOWN)
        self.others = np.array([self.mask])
        if len(vocabulary) > len(SPECIAL):
            self.others = np.arange(len(SPECIAL), len(vocabulary))
        self.longest = LONGEST

    @classmethod
    def learn(cls, captions: Iterable[str], training: Training) -> "BiGRUText":
        """Take the words of `training.vocabulary`, SCAN's file, or those that occur
        `training.minimum_count` times.

        Captions are split by `training.tokenizer`, see `Vocabulary.of`. Initial vectors are those
        of `training.word_vectors`; words that it lacks, or all without it, have random ones.
        """
        if training.vocabulary:
            vocabulary = Vocabulary.of_scan(Path(training.vocabulary), training.tokenizer)
            empty = f"vocabulary {training.vocabulary}: holds no words"
        else:
            vocabulary = Vocabulary.of(captions, training.minimum_count, training.tokenizer)
            empty = (
                f"no word occurs {training.minimum_count} times in the training captions: there is "
                "nothing to learn from; lower training.NAME.minimum_count"
            )
        if len(vocabulary) == len(SPECIAL):
            raise InputError(empty)
        if training.word_vectors is None:
            return cls(vocabulary)
        file = Path(training.word_vectors)
        vectors = read_vectors(file, vocabulary.numbers, training.word_dimension)
        return cls(replace(vocabulary, vectors=vectors.digest), vectors)

    @classmethod
    def load(cls, folder: Path) -> "BiGRUText":
        """Load vocabulary.json."""
        with refusing(OSError, f"{folder}/vocabulary.json: missing; train the head again"):
            text = (folder / "vocabulary.json").read_text(encoding="utf-8")
            return cls(Vocabulary.from_json(text))

    def save(self, folder: Path) -> None:
        """Write vocabulary.json."""
        (folder / "vocabulary.json").write_text(self.vocabulary.to_json(), encoding="utf-8")

    @property
    def digest(self) -> str:
        """SHA-256 over the words and their initial vectors."""
        return self.vocabulary.digest

    @property
    def checkpoint(self) -> dict[str, Any]:
        """{}: nothing is pretrained."""
        return {}

    def split(self, captions: Sequence[str]) -> list[Words]:
        """Convert captions to token ids, one for each word."""
        return [self._words(caption) for caption in captions]

    def _words(self, caption: str) -> Words:
        return [[number] for number in self.vocabulary.split(caption)]

    def unknown(self, caption: str) -> tuple[list[str], int]:
        """Find words that are not in the vocabulary, see `Text.unknown`."""
        return self.vocabulary.unknown(caption)

    def encoder(self, dimension: int, training: Training) -> BiGRU:
        """Build the network."""
        encoder = BiGRU(len(self.vocabulary), dimension, training.word_dimension)
        if self.vectors is not None:
            numbers = torch.from_numpy(self.vectors.numbers)
            with torch.no_grad():
                encoder.embedding.weight[numbers] = torch.from_numpy(self.vectors.values)
        return encoder
