"""Trained heads as scorers of pairs."""

from typing import Any

import numpy as np

from pipeline.foundation.artefacts import Reference, Versions
from pipeline.foundation.compute import half
from pipeline.foundation.evaluation.retrieval import Ids, Progress, Singles
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import system_name
from pipeline.judge.systems.reranking.base import PairSource
from pipeline.judge.systems.scores.judged import manifest_rows
from pipeline.make import training
from pipeline.make.training import inputs
from pipeline.make.training.scoring import Captions


class TrainedScorer:
    """A head with its stored features, and the captions of its pairs. A subclass says which heads
    it takes.
    """

    precision: str = "fp32"  # in which it computes

    def __init__(self, name: str, source: PairSource) -> None:
        self.name = name
        self.source = source
        self.images = Manifest.load(source.paths.manifest(source.images))
        self.captions = self.images
        if source.captions != source.images:
            self.captions = Manifest.load(source.paths.manifest(source.captions))
        folder = source.paths.head(source.dataset, name)
        self.head = training.Head.open(folder, source.device)
        features = source.paths.features(source.images, self.head.feature)
        self.store = self.head.stored_images(self.images, features)

    @property
    def gives_logits(self) -> bool:
        """As `PairScorer.gives_logits`."""
        return self.head.gives_logits

    @property
    def references(self) -> dict[str, Reference]:
        """The head, which is an artefact, and what it reads of the data set of the queries."""
        path = self.store.path
        features = Reference(kind="features", name=path.stem, identity=inputs.whole(path))
        return {
            "scorer": self.head.artefact.reference,
            "scorer.features": features,
            "scorer.manifest": self.images.reference,
        }

    @property
    def made_from(self) -> dict[str, Any]:
        """The head by its checkpoint, its features and its manifests, by digest."""
        head = self.head.artefact
        asked = head.request
        facts = {
            "kind": head.facts.scorer,
            "name": self.name,
            "recipe": asked.name,
            "feature": asked.feature,
            "series": system_name(asked.name, asked.feature, asked.text),
            "seed": asked.seed,
            "checkpoint": head.checkpoint,
            "store": self.store.identity,
            "content": self.store.content(np.flatnonzero(self.store.done)),
            "images": self.images.digest,
            "captions": self.captions.digest,
        }
        if head.dataset not in (self.images.dataset, self.captions.dataset):
            facts["trained_on"] = head.dataset
        return facts

    @property
    def versions(self) -> Versions:
        """The versions of the head's parts."""
        return self.head.artefact.request.versions()

    def rows(self, image_ids: Ids) -> Ids:
        """Find images in the store."""
        rows = manifest_rows(self.images, "image", image_ids)
        failed = image_ids[~self.store.done[rows]]
        if len(failed):
            raise InputError(
                f"{self.store.path}: image {failed[0]} failed in extraction; extract it, or leave it "
                "out of the manifest"
            )
        return rows

    def captions_of(self, caption_ids: Ids) -> tuple[Captions, Ids]:
        """Read the captions of pairs, each once."""
        ids, place = np.unique(caption_ids, return_inverse=True)
        rows = manifest_rows(self.captions, "caption", ids)
        further = self.captions.caption_inputs
        table = self.captions.rows(["caption", *further]).iloc[rows]
        inputs = {column: table[column].tolist() for column in further}
        return self.head.read(table["caption"].tolist(), inputs, ids), place.astype(np.int64)

    def score(
        self, image_ids: Ids, caption_ids: Ids, progress: Progress = lambda pairs: None
    ) -> Singles:
        """Score pairs, see `PairScorer.score`."""
        captions, caption = self.captions_of(caption_ids)
        return self.head.score_pairs(
            self.store,
            self.rows(image_ids),
            captions,
            caption,
            self.source.batch_size,
            self.precision,
            progress,
        )


class CrossScorer(TrainedScorer):
    """Scores pairs by a trained cross-encoder: the difference of its logits of a right and a wrong
    pair, or its cosine.

    It computes in bfloat16 where that is faster ("bf16"), except the last layer.
    """

    def __init__(self, name: str, source: PairSource) -> None:
        super().__init__(name, source)
        if self.head.compares != "cross":
            raise InputError(
                f"{name}: was not trained to score pairs; name a head of a recipe with the task ce"
            )
        self.precision = half.fastest(source.device)

    @property
    def made_from(self) -> dict[str, Any]:
        """The head's digests, and the precision."""
        return {**super().made_from, "kind": "cross", "precision": self.precision}


class LateScorer(TrainedScorer):
    """Scores pairs by a trained head of late interaction."""

    def __init__(self, name: str, source: PairSource) -> None:
        super().__init__(name, source)
        if self.head.compares != "late":
            raise InputError(
                f"{name}: is not a head of late interaction; name one of a recipe such as late or late-scan"
            )
