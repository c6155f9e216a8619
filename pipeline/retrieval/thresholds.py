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


class OwnThresholds:
    """What candidates are compared with where a block holds whole queries: read from the block itself.

    Cells are computed once, and none is computed beforehand. The arrays are those of `Thresholds`; they are filled
    block by block, by several threads at once, each its own queries.
    """

    def __init__(self, source: Similarity, owner: Ids) -> None:
        images, captions = source.shape
        self.known, self.owner = np.flatnonzero(owner >= 0), owner
        self.caption, self.image = (np.full(size, np.inf) for size in (captions, images))
        self.by_owner = self.known[np.argsort(owner[self.known], kind="stable")]
        equal = source.equal
        distinct = equal is None or all(len(np.unique(labels)) == len(labels) for labels in equal)
        self.labels = None if distinct else equal

    def settle_captions(self, scores: Cells, captions: slice) -> None:
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
            scores[query] = np.where(images[own[query], None] == images, found[:, None], scores[query])

    def settle_images(self, scores: Cells, images: slice) -> None:
        """Reads the thresholds of image queries; captions equal to a query's best get the same number.

        Args:
            scores: Of these images, float64 [Q, C]; written into where columns of the matrix are equal.
            images: The queries.
        """
        first, last = np.searchsorted(self.owner[self.by_owner], (images.start, images.stop))
        captions = self.by_owner[first:last]
        query = self.owner[captions] - images.start
        found = scores[query, captions]
        best = np.full(len(scores), -np.inf)
        np.maximum.at(best, query, found)
        if self.labels is not None:
            reached = np.flatnonzero(found == best[query])
            label = np.full(len(scores), -1, np.int64)
            label[query[reached]] = self.labels.captions[captions[reached]]
            np.copyto(scores, best[:, None], where=label[:, None] == self.labels.captions)
            found = scores[query, captions]
        self.caption[captions] = found
        self.image[images] = np.where(best == -np.inf, np.inf, best)
