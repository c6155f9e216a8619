"""Each item's similarities to all others of its kind: images among images, captions among captions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeline.retrieval.blocks import Cells, Ids, Index, cut
from pipeline.retrieval.embeddings import Embedding, Embeddings
from pipeline.retrieval.similarity import WholeQueries

BYTES_A_CELL = 8


class Others(WholeQueries):
    """The products of embeddings [N, D] with each other. An item comes last among its own candidates."""

    by_image, equal = True, None

    def __init__(self, vectors: Embedding) -> None:
        self.products = Embeddings(vectors, vectors)
        self.shape = self.products.shape
        self.last = float(np.finfo(self.products.dtype).min)

    def block(self, images: Index, captions: Index) -> Cells:
        """See `Similarity.block`; whole rows alone."""
        cells = np.array(self.products.block(images, captions))
        queries = np.arange(self.shape[0])[images]
        cells[np.arange(len(queries)), queries] = self.last
        return cells

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        """See `Similarity.pairs`."""
        return np.where(images == captions, self.last, self.products.pairs(images, captions))

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """See `Similarity.grid`; blocks of whole rows."""
        return cut(shape, max(1, block_bytes // (BYTES_A_CELL * shape[1])), shape[1])
