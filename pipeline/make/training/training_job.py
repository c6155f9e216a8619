"""A head to train, and its folder."""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from pipeline.foundation.artefacts import Draft, Reference
from pipeline.foundation.artefacts.making import IfChanged
from pipeline.foundation.compute.device import require
from pipeline.foundation.files import atomic
from pipeline.foundation.files.weights import UNTRAINED
from pipeline.foundation.manifest import Manifest, Split
from pipeline.foundation.parts.errors import InputError, InputWarning, counted
from pipeline.foundation.settings import Recipe, Training
from pipeline.make import heads, text as texts
from pipeline.make.features.store import FeatureStore, ItemFormat, provenance
from pipeline.make.heads.base import HeadNetwork
from pipeline.make.text import Text
from pipeline.make.text.features import FeatureText
from pipeline.make.text.tokens import TokenText
from pipeline.make.training import inputs, sampling, unknown
from pipeline.make.training.artefact import WORDS, HeadFacts, Origin
from pipeline.make.training.job import Job
from pipeline.make.training.photographs import Photographs
from pipeline.make.training.processes import Processes
from pipeline.make.training.request import ConvertRequest, TrainRequest, check_parts
from pipeline.make.training.source import ImageSource, networks, usable


@dataclass(frozen=True)
class TrainingData:
    """What a job reads, open."""

    train: Split  # the pairs that it learns from
    val: Split  # those that select the best epoch
    text: Text  # its text encoder, with the vocabulary
    keep_first: bool  # whether an image's vector is its class token, which is never dropped
    made_from: Mapping[str, Reference]  # role -> artefact

    def notes(self) -> list[str]:
        """Say the share of words of val that the text encoder does not know."""
        val = self.val
        counts = self.text.captions(val.captions, val.caption_ids).unknown()
        return unknown.summaries([val], {val.name: counts}, self.made_from["manifest"].name)


@dataclass(frozen=True)
class TrainingJob(Job[TrainingData]):
    """A head to train: from what, how, and where its files go."""

    manifest: Manifest  # images and captions
    source: ImageSource  # the images' features, or their files
    feature: str  # a name in `FEATURES`
    text: str  # a key of `TEXTS`
    recipe_name: str  # the recipe's name
    recipe: Recipe  # the recipe
    training: Training  # the sizes
    seed: int  # the seed of all random draws
    folder: Path  # where its files go
    if_changed: IfChanged = "refuse"  # whether another head in the folder is refused or replaced
    processes: Processes = field(default_factory=Processes)  # the processes that share a batch
    origin: Origin | None = None  # the published weights of a head that was not trained here
    # The folder of the head that gives the initial weights, if the recipe has a `start`.
    start: Path | None = None
    # The folder of the head that finds hard negatives, if the recipe names one.
    retriever: Path | None = None
    captions: FeatureStore | None = None  # the captions' features, for the text encoder `features`

    def learn(self, captions: Iterable[str]) -> Text:
        """The text encoder; a vocabulary is learned from the training captions.

        Raises:
            InputError: If files that the settings name are missing.
        """
        if self.captions is not None:
            return FeatureText.of(self.captions)
        kind = texts.kind(self.text)
        if not issubclass(kind, TokenText):
            raise InputError(
                f"the text encoder {self.text} reads features of captions; name them as "
                "training.NAME.captions"
            )
        options = texts.TEXTS.further(self.text, self.training.texts.get(self.text, {}))
        return kind.learn(captions, self.training, *options)

    def network(self, words: Text, device: str) -> HeadNetwork:
        """The head's network on a device, with new or pretrained weights; words: the encoder with
        its vocabulary.
        """
        source = self.source
        backbone = None
        if isinstance(source, Photographs):
            backbone = source.pixels.backbone()
        model = heads.build(self.recipe, self.feature, source.width, words, self.training, backbone)
        return model.to(require(device))

    @cached_property
    def request(self) -> TrainRequest | ConvertRequest:
        """What is asked for."""
        engine = None
        if isinstance(self.source, Photographs):
            engine = self.source.name
        asked = (
            self.recipe_name,
            self.feature,
            self.text,
            self.seed,
            self.recipe,
            self.training,
        )
        if self.origin is None:
            return TrainRequest.of(*asked, engine=engine)
        return ConvertRequest.of(*asked, engine=engine, checkpoint=self.origin.sha256)

    @cached_property
    def rows(self) -> np.ndarray:
        """Rows of the images that training reads: those of train and val with features, int64."""
        return inputs.trained_rows(self.manifest, self.source.done)

    @cached_property
    def content(self) -> str | None:
        """Digest of the feature bytes that it is trained on.

        None for a head that was trained elsewhere, or that reads photographs.
        """
        if self.origin or isinstance(self.source, Photographs):
            return None
        return self.source.content(self.rows)

    def open(self) -> TrainingData:
        """Open what it reads, see `Job.open`."""
        keep_first = self.pools_class_token
        train = self._usable("train")
        val = self._usable("val")
        self._warn_of_unpaired(train)
        train = train.of_pairs()
        val = val.of_pairs()
        train = sampling.subset(train, self.training.images, self.training.subset_seed)
        train = sampling.mismatch(train, self.recipe.noise)
        sampling.require_languages(train, self.recipe.sampling)
        reading = heads.caption_reading(self.recipe)
        if reading is not None:
            for part in (train, val):
                reading.require(part.captions, part.caption_inputs.get(reading.column))
        check_parts(self.recipe, self.training.dimension)
        text = self.learn(train.captions)
        return TrainingData(train, val, text, keep_first, self.made_from(text))

    def _usable(self, name: str) -> Split:
        """The split of a name, without images that failed in extraction, in the recipe's
        languages.
        """
        split = usable(self.source, self.manifest.split(name), self.captions)
        return split.in_languages(self.recipe.languages)

    def _warn_of_unpaired(self, train: Split) -> None:
        captions = int((train.caption_image < 0).sum())
        if captions:
            counts = counted(captions, "training caption")
            warnings.warn(
                f"{counts} without an image: left out of training", InputWarning, stacklevel=3
            )
        images = int((~train.has_caption).sum())
        if images:
            counts = counted(images, f"training {self.manifest.noun}")
            warnings.warn(
                f"{counts} without a caption: left out of training", InputWarning, stacklevel=3
            )

    def check(self) -> None:
        """Compare the stores' bytes with their ledgers, see `Job.check`."""
        self.source.check(self.rows)
        if self.captions is not None:
            self.captions.check(np.flatnonzero(self.captions.done))

    def made_from(self, words: Text) -> dict[str, Reference]:
        """The artefacts that the head is made from, by role. words: its text encoder with the
        vocabulary.
        """
        source = self.source
        features = self.source.identity
        if self.content is not None and isinstance(source, FeatureStore):
            read = partial(inputs.trained_on, source, self.content)
            features = inputs.stored_features(self.manifest.cache, source.path, read)
        references = inputs.references(
            self.manifest.reference,
            self.feature,
            features,
            {"start": self.start, "retriever": self.retriever},
        )
        if isinstance(source, Photographs) and self.origin is None:
            references["photographs"] = source.reference(self.rows)
        if self.captions is not None:
            read_rows = np.flatnonzero(self.captions.done)
            identity = inputs.trained_on(self.captions, self.captions.content(read_rows))
            references["captions"] = Reference(
                kind="features", name=str(self.training.captions), identity=identity
            )
        elif not self.request.words:  # they are pretrained
            references["text"] = Reference(kind="text", name=self.text, identity=words.digest)
        return references

    def facts(self, words: Text) -> HeadFacts:
        """The facts that readers of the head need besides. words: its text encoder with the
        vocabulary.
        """
        source = self.source
        if isinstance(source, Photographs):
            images = {
                "features": source.provenance,
                "own_network": {
                    "engine": source.name,
                    "options": {**source.options, "weights": UNTRAINED},
                },
            }
        else:
            images = {"features": provenance(source), "items": ItemFormat.of(source).recorded()}
        return HeadFacts.model_validate(
            images
            | {
                "width": source.width,
                "vocabulary": words.digest,
                "networks": networks(source, words, self.origin),
                "store": source.identity,
                "content": self.content,
                "origin": self.origin,
                "scorer": self.request.scorer,
            }
        )

    def begin(self, draft: Draft, data: TrainingData) -> None:
        """Write its text encoder and its facts into a draft, see `Job.begin`."""
        self.describe(draft, data.text)

    def describe(self, draft: Draft, words: Text) -> None:
        """Write its words, the text encoder with the vocabulary, and its facts into a draft."""
        with atomic.creating(draft.folder / WORDS) as folder:
            words.save(folder)
        draft.facts = self.facts(words).model_dump(mode="json")
        draft.save()

    @property
    def pools_class_token(self) -> bool:
        """Whether an image's vector is its class token; InputError if it is, and the features have
        none.
        """
        if self.recipe.image_pooling.name != "cls":
            return False
        source = self.source
        if isinstance(source, Photographs):
            settings = source.engine.settings
        else:
            settings = source.fingerprint.get("settings", {})
        if not settings.get("cls"):
            raise InputError(
                f"{self.source.path}: the image pooling cls takes a class token, which these "
                f"{self.feature} features are not known to have; choose another pooling, or "
                "patch features with cls: true"
            )
        return True
