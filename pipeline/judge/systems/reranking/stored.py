"""A scorer of pairs: the stored scores of another system."""

from functools import cached_property
from typing import Any

import numpy as np

from pipeline.foundation.artefacts import Reference
from pipeline.foundation.evaluation.retrieval import (
    Ids,
    Progress,
    Similarity,
    Singles,
    as_similarity,
    rows_of,
)
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.reranking.base import PairSource
from pipeline.judge.systems.scores.system import System

# Pairs that are read between two reports of progress.
AT_ONCE = 1 << 20


class StoredSystem:
    """Reads pairs from the one matrix of a system; source: images and captions, of one data set."""

    gives_logits = False  # Always False

    def __init__(self, name: str, source: PairSource) -> None:
        for dataset in (source.images, source.captions):
            if dataset != source.dataset:
                raise InputError(
                    f"{name}: a system's stored scores are of {source.dataset} alone, and distractors of "
                    f"{dataset} are wanted; rerank by a head that scores pairs, or leave out "
                    "--distractors"
                )
        self.store = System.open_named(source.paths.similarity(source.dataset, name, source.split))
        _ = self.store.similarity  # refuses a system without one

    @cached_property
    def matrix(self) -> Similarity:
        """Its scores, compared with their digests."""
        return as_similarity(self.store.check().similarity)  # type: ignore[return-value]

    @property
    def references(self) -> dict[str, Reference]:
        """The system, which is an artefact."""
        return {"scorer": self.store.reference}

    @property
    def made_from(self) -> dict[str, Any]:
        """The system's identity, and the parts of its record that are compared or joined with the
        retriever's.
        """
        made = self.store.made_from
        return {
            "identity": self.store.reference.identity,
            "series": made.series,
            "steps": made.steps,
            "fusion": made.fused_by,
            "split": made.split,
            "manifest": made.manifest,
            "members": [member.recorded() for member in made.members],
            "features": made.features,
            "untrained": made.untrained,
            "trained_on": made.training_data,
        }

    def score(
        self, image_ids: Ids, caption_ids: Ids, progress: Progress = lambda pairs: None
    ) -> Singles:
        """Read pairs from the matrix, see `PairScorer.score`."""
        rows = self._places("image", self.store.image_ids, image_ids)
        columns = self._places("caption", self.store.caption_ids, caption_ids)
        scores = np.empty(len(rows), np.float32)
        for start in range(0, len(rows), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            scores[part] = self.matrix.pairs(rows[part], columns[part])
            progress(min(start + AT_ONCE, len(rows)))
        return scores

    def _places(self, what: str, ids: Ids, wanted: Ids) -> Ids:
        return rows_of(
            ids,
            wanted,
            lambda each: (
                f"{self.store.path}: does not score {what} {each}; score both systems "
                "on the same split of the same manifest"
            ),
        )
