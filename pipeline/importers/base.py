"""What every format offers: an index of the manifest's images in the source, and the features of one of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pipeline.extractors.base import Items
from pipeline.store import Extra

UNKNOWN_SIZE = (0, 0)  # of an image, in pixels, where the source does not tell

OnFound = Callable[[int], None]


class Unusable(Exception):
    """One image's features cannot be used. The message says what was expected and what received."""


@dataclass(frozen=True)
class Found(Items):
    """One image as the source has it. size: the image's width and height in pixels."""

    size: tuple[int, int] = UNKNOWN_SIZE


@dataclass
class Source(ABC):
    """A source that has been looked through but not read.

    counts: [I] int64, the items of each of the manifest's images, 0 where the source has no features of it.
    dimension: D. files: all that the features come from. extras: what stands beside the features. faults: the
    manifest's row -> where its features stand and why they cannot be used, known without reading them. notes: what a
    user should be told.
    """

    counts: np.ndarray
    dimension: int
    files: Sequence[Path]
    extras: Mapping[str, Extra] = field(default_factory=dict)
    faults: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @abstractmethod
    def read(self, row: int) -> Found:
        """Features [counts[row], D] float32 of an image that is there. Raises Unusable where they are damaged."""

    @abstractmethod
    def place(self, row: int) -> str:
        """Where they stand: the file, and the line or row in it."""
