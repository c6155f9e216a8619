"""What candidates are compared with, and the care that computed cells need before they are."""

from __future__ import annotations

import numpy as np

from pipeline.retrieval.blocks import Cells, Ids
from pipeline.retrieval.similarity import Similarity


class Thresholds:
    """What candidates are compared with: each caption's similarity to its image [C], and the best of each
    image's captions [I].
    """

    def __init__(self, source: Similarity, owner: Ids) -> None:
        known = np.flatnonzero(owner >= 0)
        cells = source.pairs(owner[known], known)
        # Infinity where there is no query: no candidate reaches it.
        self.caption = np.full(source.shape[1], np.inf, cells.dtype)
        self.caption[known] = cells
        self.image = np.full(source.shape[0], -np.inf, cells.dtype)
        np.maximum.at(self.image, owner[known], cells)
        self.image[self.image == -np.inf] = np.inf
        self.known, self.owner, self.equal = known, owner, source.equal
        if self.equal is not None:
            self._label(self.equal.images, self.equal.captions)

    def _label(self, images: Ids, captions: Ids) -> None:
        """Labels, for each row, of the image itself and of its best caption; for each column, of the caption
        and of its image.
        """
        best = np.full(len(images), -1, np.int64)
        reached = self.caption[self.known] == self.image[self.owner[self.known]]
        best[self.owner[self.known[reached]]] = captions[self.known[reached]]
        own = np.where(self.owner >= 0, images[self.owner], -1)
        self.distinct = len(np.unique(images)) == len(images) and len(np.unique(captions)) == len(captions)
        self.labels = images, best, captions, own

    def settle(self, block: Cells, rows: slice, columns: slice) -> None:
        """Writes into a computed block the numbers to compare with, wherever the same two vectors were
        multiplied.

        Rounding may differ from one product to another; without this, an image could beat itself or its own
        duplicate.
        """
        if self.equal is None:
            return
        if self.distinct:
            inside = np.flatnonzero((self.owner[columns] >= rows.start) & (self.owner[columns] < rows.stop))
            block[self.owner[columns][inside] - rows.start, inside] = self.caption[columns][inside]
            return
        image, best, caption, own = self.labels
        np.copyto(block, self.caption[None, columns], where=image[rows, None] == own[None, columns])
        np.copyto(block, self.image[rows, None], where=best[rows, None] == caption[None, columns])
