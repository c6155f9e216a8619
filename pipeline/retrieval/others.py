"""The similarities of images to other images, or of captions to other captions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeline.retrieval.blocks import Cells, Ids, Index, cut
from pipeline.retrieval.embeddings import Embedding, Embeddings
from pipeline.retrieval.similarity import WholeQueries

BYTES_A_CELL = 8


class Others(WholeQueries):
    """The inner products of embeddings [N, D] with each other. Each item ranks last among its own candidates."""

    by_image, equal = True, None

    def __init__(self, vectors: Embedding) -> None:
        """Open and check the embeddings."""
        self.products = Embeddings(vectors, vectors)
        self.shape = self.products.shape
        self.last = float(np.finfo(self.products.dtype).min)

    def block(self, images: Index, captions: Index) -> Cells:
        """Compute a block of whole rows, see `Similarity.block`."""
        cells = np.array(self.products.block(images, captions))
        queries = np.arange(self.shape[0])[images]
        cells[np.arange(len(queries)), queries] = self.last
        return cells

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        """Compute single cells, see `Similarity.pairs`."""
        return np.where(images == captions, self.last, self.products.pairs(images, captions))

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """Cut a shape into blocks of whole rows."""
        return cut(shape, max(1, block_bytes // (BYTES_A_CELL * shape[1])), shape[1])
