"""Several arrays that are indexed like one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


class Joined:
    """Arrays [n, D] of one type, one below another, as one array [sum of n, D]; they are not copied."""

    ndim = 2

    def __init__(self, parts: Sequence[npt.NDArray[Any]]) -> None:
        """Hold the arrays."""
        self.parts = parts
        self.ends = np.cumsum([len(part) for part in parts])
        self.shape = (int(self.ends[-1]), parts[0].shape[1])
        self.dtype, self.itemsize = parts[0].dtype, parts[0].itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> npt.NDArray[Any]:
        """Read some rows."""
        rows, columns = index if isinstance(index, tuple) else (index, slice(None))
        if isinstance(rows, slice):
            first, last, _ = rows.indices(len(self))
            return np.concatenate([part[max(0, first - start):max(0, last - start), columns]
                                   for part, start in self._placed()])
        out = np.empty((len(rows), self.shape[1]), self.dtype)
        for (part, start), end in zip(self._placed(), self.ends, strict=True):
            here = np.flatnonzero((rows >= start) & (rows < end))
            out[here] = part[rows[here] - start]
        return out[:, columns]

    def _placed(self) -> list[tuple[npt.NDArray[Any], int]]:
        return [(part, int(end) - len(part)) for part, end in zip(self.parts, self.ends, strict=True)]
