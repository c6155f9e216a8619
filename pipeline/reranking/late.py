"""A scorer of pairs: late interaction over stored items."""

from __future__ import annotations

from typing import Any

from pipeline.errors import InputError
from pipeline.heads.base import Interaction
from pipeline.reranking.base import PairSource, Progress, Scores
from pipeline.reranking.trained import TrainedScorer
from pipeline.retrieval.blocks import Ids
from pipeline.training.late_scores import some_pairs


class LateScorer:
    """Scores pairs by a trained head of late interaction.

    Args:
        name: The head's name.
        source: What it is opened for.

    Raises:
        InputError: If there is no such head, or it has another architecture.
    """

    gives_logits = False

    def __init__(self, name: str, source: PairSource) -> None:
        self.name, self.source = name, source
        self.opened = TrainedScorer.open(name, source)
        model = self.opened.head.model
        if not isinstance(model, Interaction):
            raise InputError(f"{name}: is no head of late interaction; name one of the recipe late, late-scan or hgr")
        self.model = model

    @property
    def made_from(self) -> dict[str, Any]:
        """The head's digests."""
        return {"kind": self.opened.head.description["scorer"], **self.opened.made_from, "name": self.name}

    def score(self, image_ids: Ids, caption_ids: Ids, progress: Progress = lambda pairs: None) -> Scores:
        """Score pairs, see `PairScorer.score`."""
        captions, caption = self.opened.captions_of(caption_ids)
        return some_pairs(self.model, self.opened.store, self.opened.rows(image_ids), captions, caption,
                          self.source.batch_size, progress)
