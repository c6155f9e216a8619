"""A head to train, and its folder."""

import shutil
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import artefacts, heads, text as texts
from pipeline.compute import made_with
from pipeline.compute.device import require
from pipeline.features.store import FeatureStore, ItemFormat, provenance
from pipeline.files import atomic, digest, outputs, record
from pipeline.heads.base import HeadNetwork
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError, InputWarning
from pipeline.settings import Recipe, Training
from pipeline.text import Text
from pipeline.text.features import FeatureText
from pipeline.text.tokens import TokenText
from pipeline.training import checkpoint, request
from pipeline.training.processes import Processes
from pipeline.training.source import ImageSource, Photographs, networks

# The folder, inside a head's own, that holds an earlier head until the new one has a finished epoch.
REPLACED = ".replaced"
KEPT = (*checkpoint.FILES, record.FILE, "text")
# Settings that are not compared: where a head is trained, which changes only rounding, and the sources of its words and
# their initial vectors, whose digest is compared.
NOT_COMPARED = {"device", "pieces", "processes", "bert", "vocabulary", "minimum_count", "word_vectors",
                "tokenizer"}


@dataclass(frozen=True)
class TrainingJob:
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
    if_changed: str = "refuse"  # whether another head in the folder is refused or replaced
    processes: Processes = field(default_factory=Processes)  # the processes that share a batch
    origin: Mapping[str, Any] | None = None  # the origin of a head that was not trained here
    start: Path | None = None  # the folder of the head that gives the initial weights, if the recipe has a `start`
    retriever: Path | None = None  # the folder of the head that finds hard negatives, if the recipe names one
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
            raise InputError(f"the text encoder {self.text} reads features of captions; name them as "
                             "training.NAME.captions")
        return kind.learn(captions, self.training)

    def network(self, words: Text, device: str) -> HeadNetwork:
        """The head's network on a device, with new or pretrained weights; words: the encoder with its vocabulary."""
        source = self.source
        backbone = source.pixels.backbone() if isinstance(source, Photographs) else None
        model = heads.build(self.recipe, self.feature, source.width, words, self.training, backbone)
        return model.to(require(device))

    def description(self, words: Text) -> dict[str, Any]:
        """Compose head.json: all that the head depends on.

        Args:
            words: Its text encoder with the vocabulary.

        Returns:
            JSON values.
        """
        more: dict[str, Any] = {} if self.origin is None else {"origin": dict(self.origin)}
        for key, folder in (("start", self.start), ("retriever", self.retriever)):
            if folder is not None:
                checkpoint.read_description(folder)  # refused in plain words if there is none
                more[key] = digest.sha256(folder / "best.safetensors")
        if self.captions is not None:
            more["captions"] = self.captions.identity
        if "ce" in self.recipe.tasks or heads.compares_parts(self.recipe):
            more["scorer"] = self.recipe.architecture.name
        made = self.source.provenance if isinstance(self.source, Photographs) else provenance(self.source)
        if isinstance(self.source, Photographs):
            more["finetuned"] = {"engine": self.source.name, "options": self.source.options}
        else:
            more["items"] = ItemFormat.of(self.source).recorded()
        return {**more, "dataset": self.manifest.dataset, "feature": self.feature, "text": self.text,
                "recipe": self.recipe_name, "recipe_settings": request.recorded(self.recipe),
                "training": self.training.recorded(exclude=NOT_COMPARED), "seed": self.seed,
                "manifest": self.manifest.digest, "store": self.source.identity, "features": made,
                "vocabulary": words.digest, "width": self.source.width}

    def differs(self, words: Text) -> list[str]:
        """Compare the head in the folder with this one.

        Args:
            words: Its text encoder with the vocabulary.

        Returns:
            The keys of head.json that differ; [] if the folder holds no head.
        """
        if not (self.folder / "head.json").exists():
            return []
        existing, description = checkpoint.read_description(self.folder), self.description(words)
        differs = [key for key in description if existing.get(key) != description[key]]
        # Heads from before the content was recorded do not have it.
        same = "content" not in existing or existing["content"] == self._content()
        return differs if differs or same else ["the bytes of its features"]

    @cached_property
    def rows(self) -> np.ndarray:
        """Rows of the images that training reads: those of train and val with features, int64."""
        read = self.manifest.images["split"].isin(("train", "val")).to_numpy()
        return np.flatnonzero(read & self.source.done)

    def _content(self) -> str | None:
        """Digest of the feature bytes that it is trained on.

        None for a head that was trained elsewhere, or that reads photographs: they are first read in its first epoch,
        not only for a digest.
        """
        if self.origin is not None or isinstance(self.source, Photographs):
            return None
        return self.source.content(self.rows)

    @property
    def _lost(self) -> list[str]:
        """Missing files of a head that has finished an epoch."""
        needed = ("best.safetensors", "head.json") if (self.folder / "last.safetensors").exists() else ()
        return [file for file in needed if not (self.folder / file).exists()]

    @property
    def versions(self) -> dict[str, int | str]:
        """The versions of the parts that make such a head; {} for one that was not trained here."""
        return {} if self.origin is not None else request.made_by(
            self.text, self.recipe, self.training.tokenizer)

    @property
    def _other_code(self) -> list[str]:
        """The parts whose versions differ from those that made the head in the folder."""
        exists = (self.folder / "head.json").exists() and self.origin is None
        return record.changed(self.folder, self.versions) if exists else []

    @property
    def pools_class_token(self) -> bool:
        """Whether an image's vector is its class token.

        Raises:
            InputError: If it is, and the features have none.
        """
        if self.recipe.image_pooling.name != "cls":
            return False
        source = self.source
        settings = source.engine.settings if isinstance(source, Photographs) else source.fingerprint.get("settings", {})
        if not settings.get("cls"):
            raise InputError(f"{self.source.path}: the image pooling cls takes a class token, which these "
                             f"{self.feature} features are not known to have; choose another pooling, or "
                             "patch features with cls: true")
        return True

    def check(self, words: Text) -> bool:
        """Check that the recipe's parts can be built, and that the folder can take this head.

        Args:
            words: Its text encoder with the vocabulary.

        Returns:
            Whether the folder holds this head, trained to its last epoch.

        Raises:
            InputError: If they cannot, or if the folder holds another head, or one with missing files, that is not to
                be replaced.
        """
        request.check_parts(self.recipe, self.training.dimension)
        outputs.refuse_occupied(self.folder, "head")
        differs = self.differs(words)
        if not differs and self.if_changed == "refuse" and self._other_code \
                and record.read(self.folder).versions is not None:
            warnings.warn(f"{self.folder}: was trained by other code ({artefacts.named(self._other_code)}); "
                          "--if-changed redo trains it again", InputWarning, stacklevel=2)
        if differs and self.if_changed == "refuse":
            raise InputError(f"{self.folder}: holds a head trained with other settings ({', '.join(differs)}); choose "
                             "another --out, or --if-changed redo to replace it")
        if self._lost and self.if_changed == "refuse":
            raise InputError(f"{self.folder}: has lost {' and '.join(self._lost)}; put that back, or --if-changed redo "
                             "to train again")
        return not differs and checkpoint.state(self.folder).epochs >= self.training.epochs

    def claim(self, words: Text) -> None:
        """Prepare the folder for this head, in place of another one that it holds.

        A missing vocabulary is written again. If the best network or head.json is missing, training starts again. An
        unfinished head records this machine, if it is another one than before.

        Args:
            words: Its text encoder with the vocabulary.
        """
        if self.differs(words) or self._lost or (self._other_code and self.if_changed == "redo"):
            kept = self.folder / REPLACED  # until the new one has a finished epoch, see `put_back`
            kept.mkdir()
            for name in KEPT:  # the last epoch first: without it the head counts as set aside
                if (self.folder / name).exists():
                    (self.folder / name).rename(kept / name)
        if (self.folder / "head.json").exists() and self._holds(words):
            description = checkpoint.read_description(self.folder)
            machines, now = description.get("made_with", []), made_with.record()
            unfinished = self.origin is None and checkpoint.state(self.folder).epochs < self.training.epochs
            if unfinished and machines[-1:] != [now]:
                self._describe(description | {"made_with": [*machines, now]})
            return
        with atomic.creating(self.folder / "text") as making:
            words.save(making)
        if not (self.folder / "last.safetensors").exists():
            record.write(self.folder, self.versions)
        aside = {"aside": self.training.model_dump(include=NOT_COMPARED), "content": self._content(),
                 "networks": networks(self.source, words, self.origin), "made_with": [made_with.record()]}
        self._describe(self.description(words) | aside)

    def finish(self) -> None:
        """Record the digest of the network, which does not change any more."""
        if (self.folder / record.FILE).exists() and checkpoint.BEST not in record.read(self.folder).wrote:
            record.keep(self.folder, checkpoint.BEST)

    def _describe(self, description: Mapping[str, Any]) -> None:
        with record.rewriting(self.folder, *checkpoint.DESCRIBED):
            atomic.write_json(self.folder / "head.json", description)

    def put_back(self) -> None:
        """Restore the head that was being replaced, unless the new one has a finished epoch."""
        kept = self.folder / REPLACED
        if not kept.is_dir():
            return
        if not (self.folder / "last.safetensors").exists():
            for name in reversed(KEPT):
                if (kept / name).exists():
                    shutil.rmtree(self.folder / name, ignore_errors=True)  # only `text` is a folder
                    (kept / name).rename(self.folder / name)
        self.drop_replaced()

    def drop_replaced(self) -> None:
        """Delete the head that was replaced."""
        shutil.rmtree(self.folder / REPLACED, ignore_errors=True)

    def _holds(self, words: Text) -> bool:
        try:
            return texts.kind(self.text).load(self.folder / "text").digest == words.digest
        except InputError:
            return False
