"""What candidates are compared with, and the care that computed cells need before they are."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pipeline.retrieval.blocks import Ids
from pipeline.retrieval.similarity import Similarity


class Thresholds:
    """What candidates are compared with: each caption's similarity to its image [C], and the best of each
    image's captions [I].
    """

    def __init__(self, source: Similarity, owner: Ids) -> None:
        known = np.flatnonzero(owner >= 0)
        cells = source.pairs(owner[known], known)
        # Infinity where there is no query: no candidate reaches it.
        self.caption = torch.full((source.shape[1],), torch.inf, dtype=cells.dtype)
        self.caption[torch.from_numpy(known)] = cells
        best = torch.full((source.shape[0],), -torch.inf, dtype=cells.dtype)
        self.image = best.scatter_reduce_(0, torch.from_numpy(owner[known]), cells, "amax")
        self.image[self.image == -torch.inf] = torch.inf
        self.known, self.owner, self.equal = known, owner, source.equal
        if self.equal is not None:
            self._label(self.equal.images, self.equal.captions)

    def _label(self, images: Ids, captions: Ids) -> None:
        """Labels, for each row, of the image itself and of its best caption; for each column, of the caption
        and of its image.
        """
        best = np.full(len(images), -1, np.int64)
        reached = (self.caption[self.known] == self.image[self.owner[self.known]]).numpy()
        best[self.owner[self.known[reached]]] = captions[self.known[reached]]
        own = np.where(self.owner >= 0, images[self.owner], -1)
        self.distinct = len(np.unique(images)) == len(images) and len(np.unique(captions)) == len(captions)
        self.labels = tuple(torch.from_numpy(each) for each in (images, best, captions, own))

    def settle(self, block: Tensor, rows: slice, columns: slice) -> None:
        """Writes into a computed block the numbers to compare with, wherever the same two vectors were
        multiplied.

        Rounding may differ from one product to another; without this, an image could beat itself or its own
        duplicate.
        """
        if self.equal is None:
            return
        if self.distinct:
            inside = np.flatnonzero((self.owner[columns] >= rows.start) & (self.owner[columns] < rows.stop))
            at = torch.from_numpy(inside)
            block[torch.from_numpy(self.owner[columns][inside] - rows.start), at] = self.caption[columns][at]
            return
        image, best, caption, own = self.labels
        same_image = image[rows, None] == own[None, columns]
        torch.where(same_image, self.caption[None, columns], block, out=block)
        same_best = best[rows, None] == caption[None, columns]
        torch.where(same_best, self.image[rows, None], block, out=block)
