"""The BiGRU text encoder: word embeddings and one bidirectional GRU whose directions are averaged."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class BiGRU(nn.Module):
    """Faghri et al. 2018; VSE-infinity and VSE+2AD, implementation details.

    Word embeddings are drawn from uniform(-0.1, 0.1); hidden size = dimension; the two directions are averaged.
    """

    def __init__(self, words: int, dimension: int, word_dimension: int = 300) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, word_dimension)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.gru = nn.GRU(word_dimension, dimension, batch_first=True, bidirectional=True)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """tokens [B, T] int64, lengths [B] int64 from 1 to T. Returns [B, T, dimension], padding zero."""
        packed = pack_padded_sequence(self.embedding(tokens), lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=tokens.shape[1])
        forward, backward = states.chunk(2, dim=-1)
        return (forward + backward) / 2
