"""Plain-torch restatements of the released code that the benchmarks compare with.

They compute what the released modules compute, with the same large intermediate tensors, in our own
words. VSE+2AD: github.com/96-Zachary/vse_2ad. VSE∞: github.com/woodfrog/vse_infty.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def column_mask(counts: Tensor, slots: int) -> Tensor:
    """[B, N, 1], True where a slot holds an item."""
    return (torch.arange(slots).expand(len(counts), slots) < counts.unsqueeze(1)).unsqueeze(2)


class AP(nn.Module):
    """VSE+2AD's `modules/adcap.py`: the pooling that it trains."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.token = nn.Linear(dim, dim)
        self.balance = nn.Linear(dim, 1)

    def forward(self, items: Tensor, counts: Tensor) -> Tensor:
        """Items [B, N, D] and counts [B] to [B, D]."""
        padding = ~column_mask(counts, items.shape[1])
        ordered = torch.sort(items.masked_fill(padding, -1000), dim=1, descending=True)[0]
        embedding = (ordered * torch.softmax(ordered, dim=1)).sum(1)
        ordered = ordered.masked_fill(padding, 0)
        weights = torch.softmax(torch.relu_(self.token(ordered)), dim=1)
        token = (ordered * weights).sum(1)
        both = torch.stack([token, embedding], dim=1)
        return (both * torch.softmax(self.balance(both), dim=1)).sum(1)


class GPO(nn.Module):
    """VSE∞'s `lib/modules/aggr/gpo.py`: the BiGRU runs once for every sample."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.width = width
        self.gru = nn.GRU(width, width, 1, batch_first=True, bidirectional=True)
        self.linear = nn.Linear(width, 1, bias=False)

    def encode(self, length: int) -> Tensor:
        """Cosine and sine positions [length, width]."""
        rate = torch.exp(torch.arange(0, self.width, 2) * (-math.log(10000.0) / self.width))
        angle = torch.arange(length).unsqueeze(1) * rate
        return torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)

    def forward(self, items: Tensor, counts: Tensor) -> Tensor:
        """Items [B, N, D] and counts [B] to [B, D]."""
        length = int(counts.max())
        padding = ~column_mask(counts, length)
        positions = (
            self.encode(length).unsqueeze(0).repeat(len(counts), 1, 1).masked_fill(padding, 0)
        )
        packed = pack_padded_sequence(positions, counts, batch_first=True, enforce_sorted=False)
        states = pad_packed_sequence(self.gru(packed)[0], batch_first=True)[0]
        scores = self.linear((states[..., : self.width] + states[..., self.width :]) / 2)
        weights = torch.softmax(scores.masked_fill(padding, -10000) / 0.1, dim=1)
        ordered = items[:, :length].masked_fill(padding, -10000).sort(dim=1, descending=True)[0]
        return (ordered.masked_fill(padding, 0) * weights).sum(1)


def adcto(
    images: Tensor, captions: Tensor, margin: float = 0.2, temperature: float = 0.01
) -> Tensor:
    """VSE+2AD's `losses.py`: the adaptive loss of embeddings [B, D]; gathers the hardest keys, B ×
    K × D.
    """
    similarity = captions @ images.T
    to_images = adcto_one_direction(similarity, captions, images, margin, temperature)
    return (
        to_images + adcto_one_direction(similarity.T, images, captions, margin, temperature)
    ) / 2


def adcto_one_direction(
    similarity: Tensor, queries: Tensor, keys: Tensor, margin: float, temperature: float
) -> Tensor:
    """One direction of `adcto`: similarity [B, B] of queries and keys, both [B, D]."""
    batch, hardest = len(similarity), negatives_to_gather(similarity)
    diagonal = torch.eye(batch, dtype=torch.bool)
    order = similarity.masked_fill(diagonal, 0).sort(dim=1, descending=True)[1][:, :hardest]
    index = order.unsqueeze(2).repeat(1, 1, keys.shape[1])
    everyone = keys.repeat(batch, 1).view(batch, batch, -1)
    negatives = torch.gather(everyone, 1, index)
    negative_logits = (queries.unsqueeze(1) @ negatives.transpose(1, 2)).squeeze(1) + margin
    logits = torch.cat([similarity.diagonal().unsqueeze(1), negative_logits], dim=1) / temperature
    return nn.functional.cross_entropy(logits, torch.zeros(batch, dtype=torch.int64))


@torch.no_grad()
def negatives_to_gather(similarity: Tensor, scale: float = 1.25) -> int:
    """K of `adcto` for a similarity matrix [B, B]: just above B / 2 at random embeddings, 1 once
    right pairs are more similar than others.
    """
    batch = len(similarity)
    align = similarity.diagonal().mean()
    uniform = similarity.masked_fill(torch.eye(batch, dtype=torch.bool), 0).neg().exp().mean()
    return min(max(int(math.cos(float(align + uniform) ** scale) * batch) + 1, 1), batch - 1)


class RegionEncoder(nn.Module):
    """VSE∞'s and VSE+2AD's `lib/encoders.py` for regions: a line plus an MLP over every slot,
    padding too; AP.
    """

    def __init__(self, width: int, dim: int) -> None:
        super().__init__()
        self.line = nn.Linear(width, dim)
        self.hidden, self.out = nn.Linear(width, dim // 2), nn.Linear(dim // 2, dim)
        self.norm = nn.BatchNorm1d(dim // 2)
        self.pool = AP(dim)

    def forward(self, items: Tensor, counts: Tensor) -> Tensor:
        """Items [B, N, width] and counts [B] to unit vectors [B, dim]."""
        rows = items.reshape(-1, items.shape[2])
        mapped = self.out(torch.relu(self.norm(self.hidden(rows)))).view(*items.shape[:2], -1)
        return nn.functional.normalize(self.pool(mapped + self.line(items), counts), dim=-1)


class CaptionEncoder(nn.Module):
    """Their caption encoder: a packed BiGRU whose directions are averaged, and AP."""

    def __init__(self, words: int, word_dim: int, dim: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, word_dim)
        self.rnn = nn.GRU(word_dim, dim, 1, batch_first=True, bidirectional=True)
        self.pool = AP(dim)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Tokens [B, T] and lengths [B] to unit vectors [B, dim]."""
        packed = pack_padded_sequence(
            self.embed(tokens), lengths, batch_first=True, enforce_sorted=False
        )
        states = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]
        half = states.shape[2] // 2
        return nn.functional.normalize(
            self.pool((states[..., :half] + states[..., half:]) / 2, lengths), dim=-1
        )
