"""Open a trained head, by itself or for use on a data set."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline import heads, text as texts
from pipeline.compute import products
from pipeline.compute.device import require
from pipeline.features.store import FeatureStore
from pipeline.files import record
from pipeline.files.digest import digest, sha256
from pipeline.heads.base import HeadNetwork
from pipeline.manifest import Manifest, Split
from pipeline.parts.errors import InputError, refusing
from pipeline.settings import Recipe, Training
from pipeline.settings.paths import Paths
from pipeline.text import Text
from pipeline.training import checkpoint
from pipeline.training.source import ImageSource, Photographs, of_head, usable


@dataclass(frozen=True)
class Head:
    """The best epoch's network of a trained head."""

    model: HeadNetwork  # the network
    text: Text  # converts captions to token ids
    description: dict[str, Any]  # the content of head.json
    checkpoint: str  # SHA-256 of the network's file


def load(folder: Path, manifest: Manifest, source: ImageSource, device: str = "cpu") -> Head:
    """Open a head with the manifest and source that it was trained on.

    Args:
        folder: The head's folder.
        manifest: Its manifest.
        source: Its images.
        device: A torch device; it need not be the one that the head was trained on.

    Returns:
        The head.

    Raises:
        InputError: If it is not finished, its record was edited, or it was trained on another manifest or source.
    """
    description = checkpoint.read_description(folder)
    record.read(folder)
    if ("finetuned" in description) != isinstance(source, Photographs):
        raise InputError(f"{folder}: was trained with a network of its own, from files, and not from stored features; "
                         "score it with `pipeline score`")
    for what, now in (("manifest", manifest.digest), ("store", source.identity)):
        if description.get(what) != now:
            raise InputError(f"{folder}: was trained with another {what} than is there now; train it again")
    with refusing((KeyError, ValueError, TypeError), f"{folder}: not a head of this version; train it again"):
        recipe = Recipe.model_validate(description["recipe_settings"])
        training = Training.model_validate(description["training"] | description["aside"])
        kind = texts.kind(description["text"])
    text = kind.load(folder / "text")
    if text.digest != description.get("vocabulary"):
        raise InputError(f"{folder}/text: is not the vocabulary that the head was trained with")
    if "origin" not in description and checkpoint.state(folder).epochs < training.epochs:
        raise InputError(f"{folder}: training is not finished; run the same `pipeline train` again to resume")
    model = build(recipe, description["feature"], source, text, training, device)
    checkpoint.fill(model, checkpoint.load_tensors(folder / "best.safetensors")[0],
                    f"{folder}/best.safetensors: does not fit the head's settings; train it again")
    return Head(model.eval(), text, description, sha256(folder / "best.safetensors"))


def build(recipe: Recipe, feature: str, source: ImageSource, text: Text, training: Training, device: str
          ) -> HeadNetwork:
    """Build a head's network for its images, on a device."""
    backbone = source.backbone() if isinstance(source, Photographs) else None
    model = heads.build(recipe, feature, source.width, text, training, backbone)
    return model.to(require(device))


def is_finished(folder: Path) -> bool:
    """Whether a head exists with all its epochs, so that `load` accepts it."""
    if not (folder / "best.safetensors").exists():
        return False
    description = checkpoint.read_description(folder)
    return "origin" in description or checkpoint.state(folder).epochs >= description["training"]["epochs"]


def open_by_name(paths: Paths, dataset: str, name: str, device: str = "cpu") -> tuple[Head, ImageSource]:
    """Open a head by its name.

    Args:
        paths: Where files lie.
        dataset: The data set that it was trained on.
        name: Its name.
        device: A torch device.

    Returns:
        The head, and what it was trained on: stored features, or photographs.

    Raises:
        InputError: If either is missing, or the head is not finished.
    """
    folder = paths.head(dataset, name)
    feature = checkpoint.read_description(folder)["feature"]
    return open_for(folder, (Manifest.load(paths.manifest(dataset)), paths.features(dataset, feature)), device=device)


def open_for(folder: Path, trained_on: tuple[Manifest, Path], images: tuple[Manifest, Path] | None = None,
             *, device: str = "cpu", images_folder: Path | None = None) -> tuple[Head, ImageSource]:
    """Open a head for the images of a data set.

    Args:
        folder: The head's folder.
        trained_on: The manifest that it was trained on, and its feature store.
        images: Those of another data set; None for the images that it was trained on.
        device: A torch device.
        images_folder: Where the image files lie, for a fine-tuned head; None for the manifest's folder.

    Returns:
        The head, and the images: stored features, or photographs.

    Raises:
        InputError: If any is missing, the head is not finished, or the features were made in different ways.
    """
    described = checkpoint.read_description(folder)
    source = own = of_head(described, *(images or trained_on), images_folder)
    if images is not None:
        own = of_head(described, *trained_on)
        if isinstance(source, FeatureStore) and isinstance(own, FeatureStore):
            keys = (own.fingerprint.keys() | source.fingerprint.keys()) - {"dataset", "images", "source"}
            for key in sorted(keys):
                if source.fingerprint.get(key) != own.fingerprint.get(key):
                    raise InputError(f"{source.path}: its {key} is {source.fingerprint.get(key)!r}, the head was "
                                     f"trained with {own.fingerprint.get(key)!r}; extract both alike")
    return load(folder, trained_on[0], own, device), source


@dataclass(frozen=True)
class HeadUse:
    """A head and the data set that it is used on, in a form that can be sent to a worker."""

    paths: Paths  # where files lie
    folder: Path  # the head's folder
    trained_on: str  # the data set that the head was trained on
    dataset: str  # the data set whose images and captions it reads
    images_folder: Path | None = None  # where their files lie, for a fine-tuned head; None for the manifest's folder
    device: str = "cpu"  # a torch device
    products: products.Setting = "default"  # how the CPU multiplies float32 matrices, see `pipeline.compute.products`


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
        """Open a head.

        Args:
            use: The head and the data set.

        Returns:
            The open head; this process keeps it open for tasks.

        Raises:
            InputError: If either is missing, the head is not finished or its record was edited, or the features were
                made in different ways.
        """
        products.apply(use.products)
        feature = checkpoint.read_description(use.folder)["feature"]
        own, *other = ((Manifest.load(use.paths.manifest(dataset)), use.paths.features(dataset, feature))
                       for dataset in dict.fromkeys((use.trained_on, use.dataset)))
        opened = cls(use, *open_for(use.folder, own, *other, device=use.device, images_folder=use.images_folder),
                     (other or [own])[0][0])
        kept_open[:] = [opened]
        return opened

    @property
    def identity(self) -> str:
        """Digest of the head, of what it reads and of the data set."""
        return digest([self.head.checkpoint, self.source.identity, self.manifest.digest])

    def split(self, name: str) -> Split:
        """Take a split's images that have features.

        Args:
            name: The split.

        Returns:
            The split without images that failed in extraction.
        """
        if name not in self._splits:
            self._splits[name] = usable(self.source, self.manifest.split(name))
        return self._splits[name]


# The head that this process opened last.
kept_open: list[OpenHead] = []
