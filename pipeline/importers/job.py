"""What is to be brought in, and what the store will say of it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from pipeline.errors import InputError
from pipeline.importers.base import OnFound, Source
from pipeline.importers.formats import FORMATS
from pipeline.importers.sampling import sampled
from pipeline.manifest import Manifest
from pipeline.store import Layout

VERSION = 1  # goes up by one when a change to the importers changes what a source becomes


@dataclass(frozen=True)
class Import:
    """Which source, of which format, into which store. recipe: the name under which the features are reported; None:
    the format and the sizes, all that a file tells."""

    manifest: Manifest
    format: str
    paths: tuple[Path, ...]
    store: Path
    shard_images: int
    recipe: str | None = None
    compressor: str = "none"
    dtype: str = "float16"
    on_error: Literal["fail", "skip"] = "fail"
    if_changed: Literal["refuse", "redo"] = "refuse"

    def __post_init__(self) -> None:
        if self.recipe is not None and not (self.recipe.strip() and self.recipe.isprintable()):
            raise InputError(f"--recipe {self.recipe!r}: expected a name in one line")

    def index(self, on_found: OnFound) -> Source:
        """The source, looked through. Raises InputError for an unknown format, and as the format does."""
        if self.format not in FORMATS:
            raise InputError(f"format {self.format!r}: expected one of {', '.join(FORMATS)}")
        source: Source = import_module(FORMATS[self.format]).index(self.paths, self.manifest, on_found)
        return source

    def name(self, source: Source) -> str:
        """The recipe's name: as given, else such as butd-tsv-10-100x2048."""
        counts = source.counts[source.counts > 0]
        items = "-".join(str(count) for count in sorted({int(counts.min()), int(counts.max())}))
        return self.recipe or f"{self.format}-{items}x{source.dimension}"

    def fingerprint(self, source: Source) -> dict[str, Any]:
        """All that the store's values depend on; files by name, size and a sample of their contents (see `sampled`).

        Networks that others' features come from are taken for trained ones; their weights are unknown.
        """
        return {"dataset": self.manifest.dataset, "images": self.manifest.images_digest,
                "engine": f"import-{self.format}", "version": VERSION, "recipe": self.name(source),
                "source": sampled(source.files), "weights": "unknown", "trained": True}

    def layout(self, source: Source) -> Layout:
        """N is the largest number of items of an image."""
        images = len(self.manifest.images)
        return Layout(images, int(source.counts.max()), source.dimension, min(self.shard_images, images),
                      self.compressor, source.extras, self.dtype)
