"""A pool enlarged by distractors: images and captions of other data sets that are candidates, but not queries.

Source: Geigle et al., "Retrieve Fast, Rerank Smart", TACL 2022, Table 5, which shows how recalls fall in larger
collections.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pipeline.errors import InputError
from pipeline.retrieval.blocks import Ids
from pipeline.retrieval.embeddings import Embeddings
from pipeline.retrieval.joined import Joined


class Enlarged(Embeddings):
    """The similarities of a pool's queries to its own candidates and to all distractors.

    The pool's own rows and columns come first, the distractors' after them. Only cells of the pool's own queries are
    computed: its rows in full, and its columns below them.
    """

    def __init__(self, own: Embeddings, distractors: Sequence[Embeddings]) -> None:
        """Join the embeddings; they are not copied."""
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
        """How many cells the blocks of the grid have in all."""
        return self.own[0] * self.shape[1] + (self.shape[0] - self.own[0]) * self.own[1]

    def caption_image(self, caption_image: Ids) -> Ids:
        """Extend the pool's caption map to the distractors."""
        return np.concatenate([caption_image, np.full(self.shape[1] - len(caption_image), -1, np.int64)])

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """Cut the pool's own rows and columns into blocks; cells between two distractors are left out."""
        if shape != self.shape:
            raise InputError("a pool with distractors is measured whole: leave out --protocol and --folds")
        images = self.own[0]
        yield from super().grid((images, shape[1]), block_bytes)
        if shape[0] > images:
            for rows, columns in super().grid((shape[0] - images, self.own[1]), block_bytes):
                yield slice(rows.start + images, rows.stop + images), columns
