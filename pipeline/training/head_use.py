"""A head that is open for use on a data set, and how a worker opens it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.compute import products
from pipeline.features.store import FeatureStore
from pipeline.files.digest import digest
from pipeline.manifest import Manifest, Split
from pipeline.settings.paths import Paths
from pipeline.training import checkpoint
from pipeline.training.head import Head, load
from pipeline.training.image_source import ImageSource
from pipeline.training.loop import usable
from pipeline.training.source import of_head, require_alike


@dataclass(frozen=True)
class HeadUse:
    """A head and the data set that it is used on, as a worker can open them."""

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
    manifest: Manifest  # the data set's images and captions
    source: ImageSource  # its images, as the head reads them

    @classmethod
    def open(cls, use: HeadUse) -> OpenHead:
        """Open a head.

        Args:
            use: The head and the data set.

        Returns:
            The open head; this process keeps it open for tasks.

        Raises:
            InputError: If either is missing, the head is not finished, or the features are not made alike.
        """
        products.apply(use.products)
        described = checkpoint.read_description(use.folder)
        own = Manifest.load(use.paths.manifest(use.trained_on))
        manifest = own if use.dataset == use.trained_on else Manifest.load(use.paths.manifest(use.dataset))
        source = of_head(described, manifest, use.paths.features(use.dataset, described["feature"]), use.images_folder)
        trained = source
        if manifest is not own:
            trained = of_head(described, own, use.paths.features(use.trained_on, described["feature"]))
            if isinstance(source, FeatureStore) and isinstance(trained, FeatureStore):
                require_alike(source, trained)
        opened = cls(use, load(use.folder, own, trained, use.device), manifest, source)
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
        return usable(self.source, self.manifest.split(name))


kept_open: list[OpenHead] = []
"""The head that this process opened last."""
