"""What is imported, and the fingerprint and layout of the store."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pipeline.features.importers.base import AtMost, FeatureSource, OnFound, sampled
from pipeline.features.importers.formats import FORMATS
from pipeline.features.store import StoreLayout
from pipeline.files import record
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError

FRAMES = 20  # of a clip, as HGR and VSE∞ take them


@dataclass(frozen=True)
class ImportJob:
    """An import: which source, of which format, into which store.

    Attributes:
        manifest: The images.
        format: A key of `FORMATS`.
        paths: The source's files or folders.
        store: Where the features go.
        shard_images: Images in a shard.
        reported_as: The name under which the features are reported; None for one made of format and sizes.
        compressor: How features are compressed.
        dtype: How features are stored.
        on_error: Whether an image that is missing or damaged ends the import.
        if_changed: Whether a store with other content is refused or replaced.
        frames: The most frames that a clip keeps; of photographs all items are kept.

    Raises:
        InputError: If `reported_as` is not a name in one line.
    """

    manifest: Manifest
    format: str
    paths: tuple[Path, ...]
    store: Path
    shard_images: int
    reported_as: str | None = None
    compressor: str = "none"
    dtype: str = "float16"
    on_error: Literal["fail", "skip"] = "fail"
    if_changed: Literal["refuse", "redo"] = "refuse"
    frames: int = FRAMES

    def __post_init__(self) -> None:
        if self.reported_as is not None and not (self.reported_as.strip() and self.reported_as.isprintable()):
            raise InputError(f"--as {self.reported_as!r}: expected a name in one line")

    def index(self, on_found: OnFound) -> FeatureSource:
        """Index the source.

        Args:
            on_found: Called with the number of images found since the last call.

        Returns:
            The source.

        Raises:
            InputError: For an unknown format, and as the format's `index` does.
        """
        if self.format not in FORMATS:
            raise InputError(f"format {self.format!r}: expected one of {', '.join(FORMATS)}")
        source = FORMATS[self.format](self.paths, self.manifest, on_found)
        return AtMost(source, self.frames) if self.manifest.kind == "video" else source

    def name(self, source: FeatureSource) -> str:
        """Name the features.

        Args:
            source: The indexed source.

        Returns:
            `reported_as`, or a name such as butd-tsv-10-100x2048.
        """
        counts = source.counts[source.counts > 0]
        items = "-".join(str(count) for count in sorted({int(counts.min()), int(counts.max())}))
        return self.reported_as or f"{self.format}-{items}x{source.dimension}"

    def fingerprint(self, source: FeatureSource) -> dict[str, Any]:
        """Collect all that the store's values depend on; for files see `sampled`.

        The networks behind other code bases' features count as trained; their weights are unknown.

        Args:
            source: The indexed source.

        Returns:
            JSON values.
        """
        clips = {"frames": self.frames} if self.manifest.kind == "video" else {}
        return clips | {"dataset": self.manifest.dataset, "images": self.manifest.images_digest,
                "engine": f"import-{self.format}", "version": record.version(f"importers/{self.format}"),
                "recipe": self.name(source), "source": sampled(source.files), "weights": "unknown",
                "trained": True}

    def layout(self, source: FeatureSource) -> StoreLayout:
        """Derive the store's layout; N is the largest number of items of an image.

        Args:
            source: The indexed source.

        Returns:
            The layout.
        """
        images = len(self.manifest.images)
        return StoreLayout(images, int(source.counts.max()), source.dimension, min(self.shard_images, images),
                      self.compressor, source.extras, self.dtype)
