"""The interface of a format: an index of the images in the source, and the features of one."""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from pipeline.features.extractors.base import Items
from pipeline.features.store import Extra
from pipeline.manifest import Manifest

UNKNOWN_SIZE = (0, 0)  # of an image, in pixels, where the source does not tell

OnFound = Callable[[int], None]


class UnusableItems(Exception):
    """One image's features cannot be used. The message says what was expected and what received."""


@dataclass(frozen=True)
class SourceItems(Items):
    """One image's items as the source has them.

    Attributes:
        size: Width and height of the image in pixels, `UNKNOWN_SIZE` where the source does not hold them.
    """

    size: tuple[int, int] = UNKNOWN_SIZE


@dataclass
class FeatureSource(ABC):
    """A source of features that has been indexed; the features themselves are read later, image by image.

    Attributes:
        counts: Int64 [I], the items of each of the manifest's images, 0 where the source has no features of it.
        dimension: D.
        files: All files that the features come from.
        extras: What is stored beside the features.
        faults: Row of the manifest -> where its features stand and why they cannot be used, as far as the index shows
            it.
        notes: Lines for the user.
    """

    counts: np.ndarray
    dimension: int
    files: Sequence[Path]
    extras: Mapping[str, Extra] = field(default_factory=dict)
    faults: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @abstractmethod
    def read(self, row: int) -> SourceItems:
        """Read the features of an image.

        Args:
            row: a row of the manifest with a count above 0.

        Returns:
            Features [counts[row], D] float32.

        Raises:
            UnusableItems: If they are damaged.
        """

    @abstractmethod
    def place(self, row: int) -> str:
        """Name the place of an image's features.

        Args:
            row: a row of the manifest with a count above 0.

        Returns:
            The file, and the line or row in it.
        """


class Place(NamedTuple):
    """Where an image's features stand."""

    file: Path  # the file
    where: str = ""  # the line, row or key in it, as messages name it
    at: Any = None  # what the format's reader needs

    def __str__(self) -> str:
        return f"{self.file}, {self.where}" if self.where else str(self.file)


@dataclass(kw_only=True)
class PlacedSource(FeatureSource):
    """A source that has a place for each image, and a function that reads one.

    Attributes:
        read_place: Reads the features at a place.
        places: Row of the manifest -> place.
    """

    read_place: Callable[[Place], SourceItems]
    places: dict[int, Place] = field(default_factory=dict)

    @classmethod
    def empty(cls, manifest: Manifest, read_place: Callable[[Place], SourceItems]) -> Self:
        """Begin an index of a manifest's images."""
        return cls(np.zeros(len(manifest.images), np.int64), 0, [], read_place=read_place)

    def add(self, row: int, place: Place, shape: Callable[[], tuple[int, ...]]) -> None:
        """Take up an image, with the shape [n, D] of its features or the reason why they cannot be used."""
        self.places[row] = place
        try:
            items, dimension = shape()
            if self.dimension not in (0, dimension):
                raise UnusableItems(f"expected {self.dimension} values an item, as in the first file, got {dimension}")
            self.counts[row], self.dimension = items, dimension
        except UnusableItems as error:
            self.faults[row] = f"{place}: {error}"

    def count_others(self, rows: Sequence[int | None], noun: str, manifest: Manifest) -> None:
        """Tell the user how many entries of the source are of no image of the manifest."""
        if others := rows.count(None):
            self.notes.append(f"{others:,} of {len(rows):,} {noun} are of no image of {manifest.dataset}")

    def read(self, row: int) -> SourceItems:
        return self.read_place(self.places[row])

    def place(self, row: int) -> str:
        return str(self.places[row])


# What a store's fingerprint holds of the files that its features came from.
BLOCK = 4096  # bytes
BLOCKS = 4096  # in all files together, but one a file at least


def sampled(files: Sequence[Path]) -> dict[str, Any]:
    """Describe files by names, sizes and a SHA-256 over these and over samples of their contents.

    A limited number of blocks is read, spread evenly over each file, so that resuming an import does not read 60 GB
    again. A changed name or size is always seen, changed content only where it is sampled. Files below 16 MB divided by
    the number of files are read completely. It gives the files' names, their size
    in bytes and sampled_sha256, the digest.
    """
    digest, total = hashlib.sha256(), 0
    files = sorted(files, key=lambda path: (path.name, path))
    for path in files:
        with path.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            digest.update(f"{path.name}\0{size}\n".encode(errors="surrogateescape"))
            blocks = max(1, min(-(-size // BLOCK) + 1, BLOCKS // len(files)))
            for start in np.linspace(0, max(0, size - BLOCK), blocks).astype(np.int64):
                digest.update(os.pread(file.fileno(), BLOCK, int(start)))
        total += size
    names = [path.name for path in files]
    return {"files": ", ".join(names) if len(names) <= 12 else f"{len(names)} files, {names[0]} to {names[-1]}",
            "bytes": total, "sampled_sha256": digest.hexdigest()}
