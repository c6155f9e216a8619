"""What every engine offers: prepare an image, extract a batch, and say what its features are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from PIL import Image

from pipeline.store import Extra


@dataclass(frozen=True)
class Items:
    """One image's features: [n, D] float32, n at least 1, and what is stored beside them, name -> [n, ...]."""

    features: np.ndarray
    extras: Mapping[str, np.ndarray] = field(default_factory=dict)


class Extractor(Protocol):
    """An engine with its weights loaded.

    recipe: the name under which its features are reported. version: goes up by one when a change to the engine's code
    changes its features, so that older stores are seen to be older. items: the most an image can have (N).
    dimension: D. extras: what is stored beside the features. trained: False where the network has no learned weights.
    weights: SHA-256 over the network's tensors. settings: all that its features depend on but the runtime. backend:
    what computes, see `backend.chosen`.
    """

    reported_as: str
    version: int
    items: int
    dimension: int
    extras: Mapping[str, Extra]
    trained: bool
    weights: str
    settings: Mapping[str, Any]
    backend: str

    def prepare(self, image: Image.Image) -> Any:
        """From an upright RGB image to what `extract` takes; runs beside the forward pass, on the CPU.

        Raises ImageError for an image that the engine cannot take.
        """
        ...

    def extract(self, batch: list[Any], sizes: list[tuple[int, int]]) -> list[Items]:
        """Features of prepared images. sizes: width and height of each image as decoded, in pixels."""
        ...
