"""Counts, for every row or every column of a matrix, the cells above and at a threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.evaluation.retrieval.blocks import TILE_CELLS, TILE_WIDTH, Ids

# Eight flags are added at once, as the bytes of an int64; so many words can be added before a byte overflows.
ADDED = 255


class Counts:
    """How many cells of each row or column are above its threshold, and how many are equal to it.

    Attributes:
        threshold: [n], one for each row or column.
        by_row: Whether rows are counted; otherwise columns.
        above: Int64 [n], cells larger than the threshold.
        at: Int64 [n], cells equal to the threshold.
    """

    def __init__(self, threshold: npt.NDArray[Any], by_row: bool) -> None:
        """Start at zero."""
        self.threshold, self.by_row = threshold, by_row
        self.above: Ids = np.zeros(len(threshold), np.int64)
        self.at: Ids = np.zeros(len(threshold), np.int64)

    @classmethod
    def total(cls, parts: Sequence[Counts]) -> Counts:
        """Add up the counts of different blocks of one matrix."""
        whole = cls(parts[0].threshold, parts[0].by_row)
        for part in parts:
            whole.above += part.above
            whole.at += part.at
        return whole

    def add(self, block: npt.NDArray[Any], top: int, left: int) -> None:
        """Count a block."""
        width = min(block.shape[1], TILE_WIDTH)
        height = min(TILE_CELLS // width, ADDED)
        for row in range(0, block.shape[0], height):
            for column in range(0, block.shape[1], width):
                cells = block[row : row + height, column : column + width]
                self._add_tile(cells, top + row, left + column)

    def _add_tile(self, cells: npt.NDArray[Any], top: int, left: int) -> None:
        height, width = cells.shape
        first, length = (top, height) if self.by_row else (left, width)
        part = slice(first, first + length)
        threshold = self.threshold[part, None] if self.by_row else self.threshold[part]
        flags = np.zeros((height, math.ceil(width / (8 * ADDED)) * 8 * ADDED), bool)
        np.greater(cells, threshold, out=flags[:, :width])
        self.above[part] += self._sums(flags)[:length]
        np.equal(cells, threshold, out=flags[:, :width])
        self.at[part] += self._sums(flags)[:length]

    def _sums(self, flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.integer[Any]]:
        words = flags.view(np.int64)
        if not self.by_row:
            return np.add.reduce(words, axis=0).view(np.uint8)
        lanes = np.add.reduce(words.reshape(len(words), -1, ADDED), axis=2).view(np.uint8)
        return lanes.sum(axis=1, dtype=np.int64)
