"""Two stored matrices, one for each direction, as one source."""

from __future__ import annotations

from pipeline.retrieval.blocks import Ids
from pipeline.retrieval.similarity import Direction, PerDirection, Similarity, select


class Directions:
    """One matrix [I, C] for each direction."""

    def __init__(self, of_images: Similarity, of_captions: Similarity) -> None:
        """Hold both."""
        self.both: dict[Direction, Similarity] = {"i2t": of_images, "t2i": of_captions}
        self.shape = of_images.shape

    def direction(self, name: Direction, block_bytes: int) -> Similarity:
        """Give the matrix of one direction."""
        return self.both[name]

    def select(self, images: Ids, captions: Ids) -> PerDirection:
        """Restrict the candidates. Their corrections stay those of the whole split."""
        return Directions(*(select(each, images, captions) for each in self.both.values()))  # type: ignore[arg-type]
