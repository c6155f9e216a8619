"""A pool enlarged by distractors: other data sets' images and captions, that are candidates and no queries.

So Geigle et al. ("Retrieve Fast, Rerank Smart", TACL 2022, Table 5) measure how recalls fall in larger collections.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pipeline.errors import InputError
from pipeline.retrieval.blocks import Ids
from pipeline.retrieval.embeddings import Embeddings
from pipeline.retrieval.joined import Joined


class Enlarged(Embeddings):
    """The products of a first pool's embeddings with its own and all distractors', both ways.

    Rows and columns of the first pool come first. Of the matrix only what its queries ask for is computed: its own
    rows whole, and its own columns below them.
    """

    def __init__(self, own: Embeddings, distractors: Sequence[Embeddings]) -> None:
        for each in distractors:
            if each.images.shape[1] != own.images.shape[1]:
                raise InputError(f"distractors: expected embeddings of dimension {own.images.shape[1]}, "
                                 f"received {each.images.shape[1]}")
            if {each.images.dtype, each.captions.dtype} != {own.images.dtype, own.captions.dtype}:
                raise InputError(f"distractors: expected embeddings of {own.images.dtype}, received "
                                 f"{each.images.dtype}")
        pools = [own, *distractors]
        images, captions = Joined([pool.images for pool in pools]), Joined([pool.captions for pool in pools])
        super().__init__(images, captions)
        self.own = own.shape

    @property
    def cells(self) -> int:
        """How many cells the grid has."""
        return self.own[0] * self.shape[1] + (self.shape[0] - self.own[0]) * self.own[1]

    def caption_image(self, caption_image: Ids) -> Ids:
        """The first pool's map, and -1 for the distractors."""
        return np.concatenate([caption_image, np.full(self.shape[1] - len(caption_image), -1, np.int64)])

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """The blocks of the queries' rows and columns alone; a part of the pool cannot be asked for."""
        if shape != self.shape:
            raise InputError("a pool with distractors is measured whole: leave out --protocol and --folds")
        images = self.own[0]
        yield from super().grid((images, shape[1]), block_bytes)
        if shape[0] > images:
            for rows, columns in super().grid((shape[0] - images, self.own[1]), block_bytes):
                yield slice(rows.start + images, rows.stop + images), columns
