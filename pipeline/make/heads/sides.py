"""One side of a batch, as networks read it: images or captions, each a set of vectors or a sequence
of token ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

import numpy as np
import torch
from torch import Tensor

Array = TypeVar("Array", np.ndarray, Tensor)


@dataclass(frozen=True)
class Side:
    """One side of a batch: n images or n captions."""

    # Vectors [n, N, width]; or token ids, int64 [n, N]; or, for a network with a backbone, prepared
    # pixels [n, S, S, 3].
    values: Tensor
    counts: Tensor  # Int64 [n], each from 1 to N: how many of the N are valid
    # Int64 [n], their ids in the manifest; None where nothing asks for them.
    ids: Tensor | None = None
    # With a backbone, int64 [n, N'], the indices of the items that are pooled; None for all.
    kept: Tensor | None = None
    # A further input of captions, tensors of n rows each; () for a network that reads none.
    further: tuple[Tensor, ...] = ()

    @classmethod
    def of(
        cls,
        values: np.ndarray,
        counts: np.ndarray,
        ids: np.ndarray | None = None,
        kept: np.ndarray | None = None,
        further: tuple[Tensor, ...] = (),
    ) -> Side:
        """View what a reader gave as tensors."""
        return cls(
            torch.from_numpy(values),
            torch.from_numpy(counts),
            _if_given(torch.from_numpy, ids),
            _if_given(torch.from_numpy, kept),
            further,
        )

    def __len__(self) -> int:
        return len(self.counts)

    def to(self, device: torch.device) -> Self:
        """Move all tensors to a device."""
        return self._each(lambda tensor: tensor.to(device, non_blocking=True))

    def take(self, rows: Tensor | slice) -> Self:
        """Select some of the n, by a slice or by indices."""
        return self._each(lambda tensor: tensor[rows])

    def split(self, pieces: int) -> Iterator[Self]:
        """Divide the n into pieces, in order."""
        for rows in torch.arange(len(self)).chunk(pieces):
            first = int(rows[0])
            last = int(rows[-1])
            yield self.take(slice(first, last + 1))

    def _each(self, change: Callable[[Tensor], Tensor]) -> Self:
        return replace(
            self,
            values=change(self.values),
            counts=change(self.counts),
            ids=_if_given(change, self.ids),
            kept=_if_given(change, self.kept),
            further=tuple(map(change, self.further)),
        )


def _if_given(change: Callable[[Array], Tensor], array: Array | None) -> Tensor | None:
    if array is None:
        return None
    return change(array)


def joined(sides: Sequence[Side]) -> Side:
    """Concatenate sides, padded to the longest; their ids, indices and further inputs are left
    out.
    """
    longest = max(side.values.shape[1] for side in sides)
    padded = []
    for side in sides:
        values = side.values
        count, slots, *width = values.shape
        if count:
            padding = values.new_zeros(count, longest - slots, *width)
            padded.append(torch.cat([values, padding], 1))
    counts = [side.counts for side in sides]
    return Side(torch.cat(padded), torch.cat(counts))
