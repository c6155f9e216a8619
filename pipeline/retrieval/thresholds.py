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


class OwnThresholds:
    """What candidates are compared with where a block holds whole queries: read from the block itself.

    Cells are computed once, and none is computed beforehand. The arrays are those of `Thresholds`; they are filled
    block by block, by several threads at once, each its own queries.
    """

    def __init__(self, source: Similarity, owner: Ids) -> None:
        images, captions = source.shape
        self.known, self.owner = np.flatnonzero(owner >= 0), owner
        self.caption, self.image = (torch.full((size,), torch.inf, dtype=torch.float64) for size in (captions, images))
        self.by_owner = self.known[np.argsort(owner[self.known], kind="stable")]
        equal = source.equal
        distinct = equal is None or all(len(np.unique(labels)) == len(labels) for labels in equal)
        self.labels = None if distinct else equal

    def settle_captions(self, scores: Tensor, captions: slice) -> None:
        """Reads the thresholds of caption queries; images equal to a query's own get the same number.

        Args:
            scores: Of these captions, float64 [Q, I]; written into where rows of the matrix are equal.
            captions: The queries.
        """
        own = self.owner[captions]
        query = np.flatnonzero(own >= 0)
        found = scores[query, own[query]]
        self.caption[captions][query] = found
        if self.labels is not None:
            images = self.labels.images
            same = torch.from_numpy(images[own[query], None] == images)
            scores[query] = torch.where(same, found[:, None], scores[query])

    def settle_images(self, scores: Tensor, images: slice) -> None:
        """Reads the thresholds of image queries; captions equal to a query's best get the same number.

        Args:
            scores: Of these images, float64 [Q, C]; written into where columns of the matrix are equal.
            images: The queries.
        """
        first, last = np.searchsorted(self.owner[self.by_owner], (images.start, images.stop))
        captions = self.by_owner[first:last]
        query = self.owner[captions] - images.start
        found = scores[query, captions]
        best = torch.full((len(scores),), -torch.inf, dtype=torch.float64)
        best.scatter_reduce_(0, torch.from_numpy(query), found, "amax")
        if self.labels is not None:
            reached = np.flatnonzero((found == best[query]).numpy())
            label = np.full(len(scores), -1, np.int64)
            label[query[reached]] = self.labels.captions[captions[reached]]
            same = torch.from_numpy(label[:, None] == self.labels.captions)
            torch.where(same, best[:, None], scores, out=scores)
            found = scores[query, captions]
        self.caption[captions] = found
        self.image[images] = best.masked_fill_(best == -torch.inf, torch.inf)
