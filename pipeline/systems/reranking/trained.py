"""A trained head that scores pairs, opened with the images and captions that it is asked about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline import training
from pipeline.compute import half, products
from pipeline.evaluation.retrieval.blocks import Ids
from pipeline.evaluation.retrieval.collection import rows_of
from pipeline.features.store import FeatureStore
from pipeline.heads.base import Interaction
from pipeline.heads.cross import TEMPERATURE, CrossEncoder
from pipeline.manifest import Manifest
from pipeline.manifest.table import ROLE_GRAPH
from pipeline.parts.errors import InputError
from pipeline.systems.reranking.base import PairSource, Progress, Scores
from pipeline.training import Head
from pipeline.training.optimizer import TrainingPrecision
from pipeline.training.scoring import Captions, read, score_pairs, some_pairs


@dataclass(frozen=True)
class TrainedScorer:
    """A head with its stored features, and the captions it may be asked about."""

    head: Head  # the open head
    store: FeatureStore  # the features of the images
    images: Manifest  # the manifest of the images
    captions: Manifest  # the manifest of the captions

    @classmethod
    def open(cls, name: str, source: PairSource) -> TrainedScorer:
        """Open a head by its name."""
        products.apply("auto" if source.products == "auto" else "default")
        folder = source.paths.head(source.dataset, name)
        trained_on = Manifest.load(source.paths.manifest(source.dataset))
        described = training.read_description(folder)
        own = training.source_of(described, trained_on, source.paths.features(source.dataset, described["feature"]))
        if not isinstance(own, FeatureStore):
            raise InputError(f"{folder}: has a network of its own and reads image files; a scorer of pairs reads "
                             "stored features")
        head = training.load_head(folder, trained_on, own, source.device)
        images, captions = (trained_on if other == source.dataset else Manifest.load(source.paths.manifest(other))
                            for other in (source.images, source.captions))
        store = own
        if images is not trained_on:
            found = training.source_of(described, images, source.paths.features(source.images, described["feature"]))
            assert isinstance(found, FeatureStore)
            training.require_alike(found, own)
            store = found
        return cls(head, store, images, captions)

    @property
    def made_from(self) -> dict[str, Any]:
        """The head by its checkpoint, its features and its manifests, by digest."""
        said = self.head.description
        return {"name": said["recipe"], "recipe": said["recipe"], "feature": said["feature"], "seed": said["seed"],
                "checkpoint": self.head.checkpoint, "store": self.store.identity,
                "content": self.store.content(np.flatnonzero(self.store.done)), "images": self.images.digest,
                "captions": self.captions.digest, **self._elsewhere}

    @property
    def _elsewhere(self) -> dict[str, str]:
        """The data set that the head was trained on, where neither images nor captions are of it."""
        own = str(self.head.description["dataset"])
        return {} if own in (self.images.dataset, self.captions.dataset) else {"trained_on": own}

    def rows(self, image_ids: Ids) -> Ids:
        """Find images in the store."""
        rows = rows_of(self.images.images["image_id"].to_numpy(), image_ids,
                       lambda each: f"the manifest of {self.images.dataset} has no image {each}")
        if len(failed := image_ids[~self.store.done[rows]]):
            raise InputError(f"{self.store.path}: image {failed[0]} failed in extraction and has no features to score")
        return rows

    def captions_of(self, caption_ids: Ids) -> tuple[Captions, Ids]:
        """Read the captions of pairs, each once."""
        ids, place = np.unique(caption_ids, return_inverse=True)
        table = self.captions.table
        rows = rows_of(table["caption_id"].to_numpy(), ids,
                       lambda each: f"the manifest of {self.captions.dataset} has no caption {each}")
        graphs = table[ROLE_GRAPH].to_numpy()[rows].tolist() if ROLE_GRAPH in table.columns else None
        captions = read(self.head.model, self.head.text, table["caption"].to_numpy()[rows].tolist(), graphs)
        return captions, place.astype(np.int64)


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
