"""A scorer of pairs: a cross-encoder over stored features."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.compute import half
from pipeline.errors import InputError
from pipeline.heads.cross import TEMPERATURE, CrossEncoder
from pipeline.reranking.base import PairSource, Progress, Scores
from pipeline.reranking.trained import TrainedScorer
from pipeline.retrieval.blocks import Ids
from pipeline.training.optimizer import TrainingPrecision
from pipeline.training.pair_scores import score_pairs


class CrossScorer:
    """Scores pairs by a trained cross-encoder: the difference of its logits of a right and a wrong pair, or its cosine.

    It computes in bfloat16 where that is faster, but for the last layer.

    Args:
        name: The head's name.
        source: What it is opened for.

    Attributes:
        precision: "fp32" or "bf16".
        gives_logits: False where a pair's score is a cosine.

    Raises:
        InputError: If there is no such head, or it was not trained to score pairs.
    """

    def __init__(self, name: str, source: PairSource) -> None:
        self.name, self.source = name, source
        self.opened = TrainedScorer.open(name, source)
        model = self.opened.head.model
        if not isinstance(model, CrossEncoder) or "scorer" not in self.opened.head.description:
            raise InputError(f"{name}: was not trained to score pairs; name a head of a recipe with the task ce")
        self.model, self.precision = model, half.fastest(source.device)
        self.gives_logits = model.pair_score == "classifier"

    @property
    def made_from(self) -> dict[str, Any]:
        """The head's digests, and the precision."""
        return {"kind": "cross", **self.opened.made_from, "name": self.name, "precision": self.precision}

    def score(self, image_ids: Ids, caption_ids: Ids, progress: Progress = lambda pairs: None) -> Scores:
        """Score pairs, see `PairScorer.score`."""
        captions, caption = self.opened.captions_of(caption_ids)
        precision = TrainingPrecision(self.precision, self.source.device)
        scores = score_pairs(self.model, self.opened.store, self.opened.rows(image_ids), captions.numbers, caption,
                             self.source.batch_size, precision.autocast, progress)
        return scores if self.gives_logits else scores * np.float32(TEMPERATURE)
