"""A scorer of pairs: the stored similarities of another system, such as an ensemble over three features."""

from typing import Any

import numpy as np

from pipeline.evaluation.retrieval import Ids, Singles, as_similarity, rows_of
from pipeline.parts.errors import InputError
from pipeline.systems.reranking.base import PairSource, Progress
from pipeline.systems.scores.system import System

# Pairs read before progress is told.
AT_ONCE = 1 << 20


class StoredSystem:
    """Reads pairs from a system's matrix.

    Attributes:
        gives_logits: Always False.

    Args:
        name: The system's name.
        source: The images and captions, which must be of one data set.

    Raises:
        InputError: If there is no such system, it was changed since it was written, or it has no one matrix.
    """

    gives_logits = False

    def __init__(self, name: str, source: PairSource) -> None:
        if not source.images == source.captions == source.dataset:
            raise InputError(f"{name}: a system's stored scores are of {source.dataset} alone, and distractors of "
                             f"{source.images if source.images != source.dataset else source.captions} are wanted; "
                             "rerank by a head that scores pairs, or leave out --distractors")
        self.store = System.open(source.paths.similarity(source.dataset, name, source.split)).check()
        self.matrix = as_similarity(self.store.similarity)

    @property
    def made_from(self) -> dict[str, Any]:
        """The system's seal, and what it has in common with other systems."""
        made, kept = self.store.made_from, ("split", "manifest", "members", "features", "untrained", "trained_on")
        return {"seal": self.store.seal, "steps": made.steps,
                "fusion": {key: made.fusion[key] for key in ("method", "weights")} if made.fusion else None,
                **{key: made[key] for key in kept if key in made}}

    def score(self, image_ids: Ids, caption_ids: Ids, progress: Progress = lambda pairs: None) -> Singles:
        """Read pairs from the matrix, see `PairScorer.score`."""
        rows = self._places("image", self.store.image_ids, image_ids)
        columns = self._places("caption", self.store.caption_ids, caption_ids)
        found = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            found[part] = self.matrix.pairs(rows[part], columns[part])  # type: ignore[union-attr]
            progress(min(start + AT_ONCE, len(rows)))
        return found

    def _places(self, what: str, ids: Ids, wanted: Ids) -> Ids:
        return rows_of(ids, wanted, lambda each: f"{self.store.path}: does not score {what} {each}; score both systems "
                                                 "on the same split of the same manifest")
