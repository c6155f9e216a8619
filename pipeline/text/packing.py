"""Captions of different lengths as one list of words, step by step: all first words, then all second ones."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor


@dataclass(frozen=True)
class Packing:
    """M words of B captions padded to T places, the longest caption first in each step.

    Attributes:
        steps: which packed rows hold the captions' first words, which their second, and so on.
        places: int64 [M], where each packed word stands in the flattened [B * T].
        turned: int64 [M], the packed row of the word as far from the caption's end as this one is from its start.
    """

    steps: list[slice]
    places: Tensor
    turned: Tensor

    @property
    def captions(self) -> int:
        """B."""
        return self.steps[0].stop

    @property
    def before(self) -> Tensor:
        """int64 [M - B], the packed row of the word before, of all but the captions' first words."""
        return torch.cat([torch.arange(last.start, last.start + step.stop - step.start)
                          for last, step in pairwise(self.steps)] or [torch.arange(0)])

    @classmethod
    def of(cls, lengths: Tensor, width: int) -> Packing:
        """Of captions of these lengths, int64 [B] from 1 to T, on the CPU. width: T."""
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
        """With its indices there."""
        return Packing(self.steps, self.places.to(device), self.turned.to(device))
