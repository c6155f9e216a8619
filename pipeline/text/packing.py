"""Captions of different lengths as one list of words: all first words, then all second ones, and so on."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor


@dataclass(frozen=True)
class Packing:
    """M words of B captions padded to T positions, the longest caption first in each step."""

    steps: list[slice]  # the packed rows of the captions' first words, of their second words, and so on
    places: Tensor  # int64 [M], the position of each packed word in the flattened [B * T]
    turned: Tensor  # int64 [M], the packed row of the word as far from the caption's end as this one is from its start

    @property
    def captions(self) -> int:
        """B, the number of captions."""
        return self.steps[0].stop

    @property
    def before(self) -> Tensor:
        """Int64 [M - B], the packed row of the previous word, of all words but the captions' first ones."""
        return torch.cat([torch.arange(last.start, last.start + step.stop - step.start)
                          for last, step in pairwise(self.steps)] or [torch.arange(0)])

    @classmethod
    def of(cls, lengths: Tensor, width: int) -> Packing:
        """Pack captions of lengths, int64 [B] on the CPU, in tokens of a width T."""
        longest_first = lengths.argsort(descending=True, stable=True)
        ordered = lengths[longest_first]
        present = torch.arange(int(ordered[0])).unsqueeze(1) < ordered  # [steps, B]
        step, rank = present.nonzero(as_tuple=True)
        ends = present.sum(1).cumsum(0)
        starts = torch.cat([ends.new_zeros(1), ends[:-1]])
        bounds = [0, *ends.tolist()]
        return cls([slice(start, end) for start, end in pairwise(bounds)],
                   longest_first[rank] * width + step, starts[ordered[rank] - 1 - step] + rank)

    def to(self, device: torch.device) -> Packing:
        """Move the indices to a device."""
        return Packing(self.steps, self.places.to(device), self.turned.to(device))
