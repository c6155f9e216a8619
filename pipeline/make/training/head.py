"""A trained head, opened from its folder alone, and its use on the images and captions of any data
set.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from PIL import Image

from pipeline.foundation.compute.device import require
from pipeline.foundation.evaluation.retrieval import Ids, Progress, Singles
from pipeline.foundation.files.digest import digest
from pipeline.foundation.manifest import Manifest, Split
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.foundation.settings import Recipe
from pipeline.foundation.settings.paths import Paths
from pipeline.make import heads, text as texts
from pipeline.make.features.store import FeatureStore
from pipeline.make.heads.base import HeadNetwork, Interaction
from pipeline.make.heads.cross import TEMPERATURE, CrossEncoder
from pipeline.make.heads.sides import Side
from pipeline.make.text import Text
from pipeline.make.text.features import FeatureText
from pipeline.make.training import checkpoint, scoring
from pipeline.make.training.artefact import BEST, OPENED, WORDS, HeadArtefact, OwnNetwork
from pipeline.make.training.optimizer import TrainingPrecision
from pipeline.make.training.photographs import NewImages, NewPixels, PreparedImages, photographs_of
from pipeline.make.training.source import ImageSource, ItemReader, stored, usable

# Images or captions that are embedded at once where nothing else is said.
BATCH = 64


@dataclass(frozen=True, eq=False)
class Head:
    """The best epoch's network of a trained head.

    Attributes:
        artefact: Its folder and record.
        model: The network.
        text: Converts captions to token ids.
    """

    artefact: HeadArtefact
    model: HeadNetwork
    text: Text

    @classmethod
    def open(cls, folder: Path | str, device: str = "cpu") -> Head:
        """Open the head of a folder on any torch device, without the features and manifest that it
        was trained on.

        Raises:
            InputError: If there is none, it is not finished, or its files were edited or do not fit
                each other.
        """
        head = HeadArtefact.open(Path(folder), *OPENED).require_finished()
        request = head.request
        facts = head.facts
        text = texts.kind(request.text).load(head.folder / WORDS)
        if text.digest != facts.vocabulary:
            raise InputError(
                f"{head.folder / WORDS}: is not the vocabulary that the head was trained with"
            )
        backbone = None
        if facts.own_network:
            backbone = _pixels(facts.own_network).backbone()
        build = partial(
            heads.build,
            request.recipe,
            request.feature,
            facts.width,
            text,
            request.training,
            backbone,
        )
        file = head.folder / BEST
        unfit = f"{file}: does not fit the head's settings; train it again"
        # What record.json asks for is compared before it takes memory.
        with refusing(Exception, unfit), torch.device("meta"):
            sizes = build()
        checkpoint.require_fit(sizes, file, unfit)
        model = build()
        checkpoint.fill(model.to(require(device)), file, unfit)
        return cls(head, model.eval(), text)

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.artefact.name

    @property
    def checkpoint(self) -> str:
        """SHA-256 of the network's file."""
        return self.artefact.checkpoint

    @property
    def dataset(self) -> str:
        """The data set that it was trained on."""
        return self.artefact.dataset

    @property
    def feature(self) -> str:
        """The visual feature that it reads."""
        return self.artefact.request.feature

    @property
    def recipe(self) -> Recipe:
        """The recipe that it was trained by."""
        return self.artefact.request.recipe

    @property
    def embeds(self) -> bool:
        """Whether it gives an image and a caption a vector each, and does not only score pairs."""
        return self.artefact.request.embeds

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next(self.model.parameters()).device

    def require_embeddings(self) -> None:
        """Check that it gives images and captions a vector each; InputError if it only scores
        pairs.
        """
        if not self.embeds:
            raise InputError(
                f"{self.name}: scores pairs and has no vectors of images and captions; take another head, "
                "or rerank with this one"
            )

    def images(
        self, manifest: Manifest, features: Path, images_folder: Path | None = None
    ) -> ImageSource:
        """Open the images of a manifest: their store of features, or photographs for a head with
        its own network.

        images_folder: where the photographs are; None for the manifest's folder.

        Raises:
            InputError: If the features are missing, of other images, or made otherwise than those
                of its training.
        """
        if self.artefact.facts.items is not None:
            return self.stored_images(manifest, features)
        self._require_own(manifest)
        return photographs_of(self.artefact, manifest, images_folder)

    def stored_images(self, manifest: Manifest, features: Path) -> FeatureStore:
        """Open the stored features of a manifest's images.

        Raises:
            InputError: As `images`, and if the head reads image files.
        """
        self._require_own(manifest)
        trained = self.artefact
        facts = self.artefact.facts
        if facts.items is None:
            raise InputError(
                f"{trained.folder}: was trained with its own network on image files; to score pairs, name "
                "a head that reads stored features"
            )
        store = stored(features, manifest, self.recipe)
        facts.items.require(store)
        if manifest.dataset == self.dataset and store.identity != facts.store:
            raise InputError(
                f"{trained.folder}: was trained with another store than is there now; train it again"
            )
        return store

    def _require_own(self, manifest: Manifest) -> None:
        if manifest.dataset == self.dataset and manifest.digest != self.artefact.manifest:
            raise InputError(
                f"{self.artefact.folder}: was trained with another manifest of {self.dataset} than is "
                "there now; train it again"
            )

    def reading(self, paths: Paths, manifest: Manifest) -> Head:
        """Return the head; one that reads features of captions, with those of a manifest, if
        `paths` has them.

        Raises:
            InputError: If the features are of other captions, or were made otherwise than the
                head's.
        """
        if not isinstance(self.text, FeatureText):
            return self
        path = paths.features(manifest.dataset, self.text.feature)
        if not path.exists():
            return self
        store = FeatureStore(path).require(manifest)
        return replace(self, text=self.text.reading(store))

    def new_images(self) -> PreparedImages:
        """Load the engine that makes items of photographs, as those that the head was trained on.

        Raises:
            InputError: If the features were imported, or the engine's weights are missing or
                others.
        """
        facts = self.artefact.facts
        if facts.own_network:
            return _pixels(facts.own_network)
        assert facts.items is not None
        return NewImages(facts.items, heads.reads_boxes(self.recipe), str(self.device))

    def embed_captions(self, captions: Collection[str], batch_size: int = BATCH) -> np.ndarray:
        """The unit vectors of C captions, float32 [C, d]; batch_size: captions at once."""
        return scoring.embed_captions(self.model, self.text.captions(captions), batch_size)

    def embed_images(
        self, source: ImageSource, rows: np.ndarray | None = None, batch_size: int = BATCH
    ) -> np.ndarray:
        """The unit vectors, float32 [I, d], of a source's images at some rows, or all; batch_size:
        images at once.
        """
        if rows is None:
            rows = np.arange(len(source.done))
        return scoring.embed_images(self.model, source, rows, batch_size)

    @torch.inference_mode()
    def embed_photographs(
        self, photographs: Sequence[Image.Image], prepared: PreparedImages
    ) -> np.ndarray:
        """The unit vectors, float32 [I, d], of I upright RGB photographs; prepared: what
        `new_images` gave.
        """
        images = Side.of(*prepared.items(photographs)).to(self.device)
        vectors = self.model.embed_images(images)
        return vectors.float().cpu().numpy()

    def embed(
        self, source: ImageSource, split: Split, batch_size: int = BATCH
    ) -> tuple[np.ndarray, np.ndarray]:
        """The unit vectors, float32, of a split's images [I, d], which the source gives, and
        captions [C, d].

        batch_size: images or captions at once.
        """
        return scoring.embed(self.model, source, split, self.text, batch_size)

    def score(self, source: ItemReader, split: Split, batch_size: int = BATCH) -> Singles:
        """The score of every pair of a split, float32 [I, C]; the source gives the images.

        batch_size: pairs, or images and captions, at once.
        """
        if isinstance(self.model, Interaction):
            return scoring.all_pairs(self.model, source, split, self.text, batch_size)
        assert isinstance(self.model, CrossEncoder)
        return scoring.all_by_cross(self.model, source, split, self.text, batch_size)

    @property
    def compares(self) -> Literal["late", "cross"] | None:
        """How it scores pairs: by late interaction, or as a cross-encoder; None if it was not
        trained to.
        """
        if isinstance(self.model, Interaction):
            return "late"
        if isinstance(self.model, CrossEncoder) and self.artefact.facts.scorer:
            return "cross"
        return None

    @property
    def gives_logits(self) -> bool:
        """Whether the scores of pairs are differences of two logits, not cosines."""
        return isinstance(self.model, CrossEncoder) and self.model.pair_score == "classifier"

    def read(
        self,
        captions: Collection[str],
        inputs: Mapping[str, Collection[str]] | None = None,
        ids: Ids | None = None,
    ) -> scoring.Captions:
        """Read C captions for `score_pairs`. inputs: their further inputs by column; ids: int64
        [C], if they are a manifest's.
        """
        return scoring.read(self.model, self.text, captions, inputs or {}, ids)

    def score_pairs(
        self,
        source: ItemReader,
        rows: Ids,
        captions: scoring.Captions,
        caption: Ids,
        batch_size: int,
        precision: str = "fp32",
        progress: Progress = lambda pairs: None,
    ) -> Singles:
        """Score pairs one by one.

        Args:
            source: The images.
            rows: The rows of the pairs' images in it, int64 [P].
            captions: The captions.
            caption: The number of each pair's caption, int64 [P].
            batch_size: Pairs at once.
            precision: In which a cross-encoder computes, except for the last layer.
            progress: Called with the number of pairs scored so far.

        Returns:
            Float32 [P]: late interaction's similarities; a cross-encoder's differences of logits,
            or cosines.
        """
        if isinstance(self.model, Interaction):
            return scoring.some_pairs(
                self.model, source, rows, captions, caption, batch_size, progress
            )
        assert isinstance(self.model, CrossEncoder)
        autocast = TrainingPrecision(precision, str(self.device)).autocast
        scores = scoring.score_pairs(
            self.model, source, rows, captions.reader, caption, batch_size, autocast, progress
        )
        if self.gives_logits:
            return scores
        return scores * np.float32(TEMPERATURE)


def _pixels(engine: OwnNetwork) -> NewPixels:
    return NewPixels(engine.engine, engine.options)


@dataclass(frozen=True)
class HeadUse:
    """A head and the data set that it is used on, in a form that can be sent to a worker."""

    paths: Paths  # where files lie
    folder: Path  # the head's folder
    dataset: str  # the data set whose images and captions it reads
    # Where their files are, for a fine-tuned head; None for the manifest's folder.
    images_folder: Path | None = None
    device: str = "cpu"  # a torch device


@dataclass(frozen=True, eq=False)
class OpenHead:
    """A head that is open for use on a data set."""

    use: HeadUse  # how it was opened
    head: Head  # the head
    source: ImageSource  # the data set's images, as the head reads them
    manifest: Manifest  # the data set's images and captions
    _splits: dict[str, Split] = field(default_factory=dict)  # results of `split`, for later tasks

    @classmethod
    def open(cls, use: HeadUse) -> OpenHead:
        """Open the head and the data set of a use; this process keeps them open for tasks.

        Raises:
            InputError: If either is missing, the head is not finished or its record was edited, or
                the features were made in different ways.
        """
        manifest = Manifest.load(use.paths.manifest(use.dataset))
        head = Head.open(use.folder, use.device).reading(use.paths, manifest)
        features = use.paths.features(use.dataset, head.feature)
        source = head.images(manifest, features, use.images_folder)
        opened = cls(use, head, source, manifest)
        kept_open[:] = [opened]
        return opened

    @property
    def captions(self) -> FeatureStore | None:
        """The stored features of the data set's captions, if the head reads such and there are
        any.
        """
        if isinstance(self.head.text, FeatureText):
            return self.head.text.store
        return None

    @property
    def identity(self) -> str:
        """Digest of the head, of what it reads and of the data set."""
        captions = None
        if self.captions is not None:
            captions = self.captions.identity
        return digest([self.head.checkpoint, self.source.identity, captions, self.manifest.digest])

    def split(self, name: str) -> Split:
        """The split of this name without images that failed in extraction."""
        if name not in self._splits:
            whole = self.manifest.split(name)
            self._splits[name] = usable(self.source, whole, self.captions)
        return self._splits[name]


# The head that this process opened last.
kept_open: list[OpenHead] = []
