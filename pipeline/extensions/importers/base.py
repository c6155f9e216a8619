"""The interface of a format: an index of a source's images, and the features of one."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.manifest import Manifest
from pipeline.make.features.extractors.items import Items
from pipeline.make.features.store import Extra

UNKNOWN_SIZE = (0, 0)  # the size of an image, in pixels, if the source does not say it

OnFound = Callable[[int], None]


class UnusableItems(Exception):
    """One image's features cannot be used. The message says what was expected and what received."""


@dataclass(frozen=True)
class SourceItems(Items):
    """One image's items as the source has them."""

    # Width and height of the image in pixels, `UNKNOWN_SIZE` where the source does not hold them.
    size: tuple[int, int] = UNKNOWN_SIZE


class Place(NamedTuple):
    """The place of an image's features."""

    file: Path  # the file
    where: str = ""  # the line, row or key in it, for messages
    at: Any = None  # what the format's reader needs

    def __str__(self) -> str:
        return f"{self.file}, {self.where}" if self.where else str(self.file)


@dataclass
class FeatureSource:
    """A source of features that is indexed image by image; the features themselves are read
    later.
    """

    manifest: Manifest  # The images that are looked for
    # Reads an image's features, or raises `UnusableItems`.
    read_place: Callable[[Place], SourceItems]
    dimension: int = 0  # D
    files: Sequence[Path] = ()  # All files that the features come from
    extras: Mapping[str, Extra] = field(default_factory=dict)  # What is stored beside the features
    title: str = ""  # What the source was recognised as
    # Entries that cannot be used, where the image has another one or is not known.
    left_out: LeftOut = field(default_factory=lambda: LeftOut("row"))
    repeated: int = 0  # How many entries repeat another one with the same features
    entries: int = 0  # How many entries there are, with those that are left out
    # Row of the manifest -> the place of its features and why they cannot be used, if the index
    # already shows it.
    faults: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # Lines for the user
    places: dict[int, Place] = field(default_factory=dict)  # Row of the manifest -> place

    def __post_init__(self) -> None:
        # Int64 [I], the items of each of the manifest's images, 0 where the source has no features
        # of it.
        self.counts = np.zeros(len(self.manifest.images), np.int64)

    def add(self, row: int, place: Place, shape: Callable[[], tuple[int, ...]]) -> None:
        """Add an image at a row of the manifest, with the place of its features, and their shape
        [n, D].

        shape: reads it, or raises UnusableItems with the reason why they cannot be used.
        """
        self.places[row] = place
        try:
            items, dimension = shape()
        except UnusableItems as error:
            self.faults[row] = f"{place}: {error}"
            return
        if self.dimension in (0, dimension):
            self.counts[row] = items
            self.dimension = dimension
        else:
            self.faults[row] = (
                f"{place}: expected {self.dimension} values an item, as in the first file, got "
                f"{dimension}"
            )

    def add_whole(self, row: int, several: Sequence[Place], damaged: str) -> None:
        """Add an image at a row of the manifest by the first whole one of several places.

        damaged: why one that cannot be read is left out.
        """
        whole: list[tuple[Place, SourceItems]] = []
        wrong: list[tuple[Place, str]] = []
        for place in several:
            try:
                whole.append((place, self.read_place(place)))
            except UnusableItems as error:
                wrong.append((place, f"{place}: {error}"))
        if not whole:
            self.places[row], self.faults[row] = wrong.pop()
        for _, why in wrong:
            self.left_out.add(damaged, why)
        if not whole:
            return
        (first_place, first), *rest = whole
        self.places[row] = first_place
        self.counts[row] = len(first.features)
        for place, items in rest:
            if np.array_equal(first.features, items.features):
                self.repeated += 1
            else:
                self.left_out.add(
                    "an image has other features there, too, and the first count",
                    f"{place}; {first_place}",
                )

    def count_others(self, rows: Sequence[int | None], noun: str) -> None:
        """Note how many entries, by their rows of the manifest, belong to no image. noun: of them,
        in the plural.
        """
        unknown = rows.count(None)
        if unknown:
            self.notes.append(
                f"{unknown:,} of {len(rows):,} {noun} are of no image of {self.manifest.dataset}"
            )


# What a store's fingerprint records of the files that its features came from.
BLOCK = 4096  # bytes
BLOCKS = 4096  # in all files together, but at least one per file


def sampled(files: Sequence[Path]) -> dict[str, Any]:
    """Describe files by names, the sum of their sizes, and SHA-256 of names, sizes and samples of
    their contents.
    """
    # Blocks are spread evenly over each file, so that resuming an import does not read 60 GB again;
    # small files are read completely.
    digest = hashlib.sha256()
    total = 0
    files = sorted(files, key=lambda path: (path.name, path))
    for path in files:
        with path.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            digest.update(f"{path.name}\0{size}\n".encode(errors="surrogateescape"))
            blocks = max(1, min(-(-size // BLOCK) + 1, BLOCKS // len(files)))
            starts = np.linspace(0, max(0, size - BLOCK), blocks).astype(np.int64)
            for start in starts.tolist():
                digest.update(os.pread(file.fileno(), BLOCK, start))
        total += size
    names = [path.name for path in files]
    listed = ", ".join(names)
    if len(names) > 12:
        listed = f"{len(names)} files, {names[0]} to {names[-1]}"
    return {"files": listed, "bytes": total, "sampled_sha256": digest.hexdigest()}
