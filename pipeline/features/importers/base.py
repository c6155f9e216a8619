"""The interface of a format: an index of the manifest's images in the source, and the features of one image."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pipeline.features.extractors.base import Items
from pipeline.features.store import Extra

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
