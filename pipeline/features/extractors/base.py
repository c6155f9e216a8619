"""The interface of an engine: prepare an image, extract a batch, describe the features; and items on their way."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from PIL import Image

from pipeline.features.store import Extra


@dataclass(frozen=True)
class Items:
    """One image's features.

    Attributes:
        features: Float32 [n, D], n at least 1.
        extras: Name -> [n, ...], what is stored beside the features.
    """

    features: np.ndarray
    extras: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class OnDevice:
    """One image's features where a network that is not on the CPU left them, until `bring` copies a batch's."""

    features: torch.Tensor  # float32 [n, D], n at least 1
    extras: Mapping[str, torch.Tensor]  # name -> [n, ...], there or in the host's memory


Computed = Items | OnDevice


def computed(features: torch.Tensor, extras: Mapping[str, torch.Tensor] | None = None) -> Computed:
    """Collect what a network computed of an image, float32 [n, D]; as arrays if it is in the host's memory."""
    found = OnDevice(features, extras or {})
    return in_place(found) if features.device.type == "cpu" else found


def in_place(items: OnDevice) -> Items:
    """View tensors in the host's memory as arrays."""
    return Items(items.features.numpy(), {name: each.numpy() for name, each in items.extras.items()})


def alike(batch: Sequence[torch.Tensor], most: int) -> Iterator[list[int]]:
    """Group prepared images of equal size, for networks that take images of any: places in the batch, each once."""
    by_size: dict[torch.Size, list[int]] = {}
    for place, prepared in enumerate(batch):
        by_size.setdefault(prepared.shape, []).append(place)
    for places in by_size.values():
        yield from (places[first:first + most] for first in range(0, len(places), most))


class Extractor(Protocol):
    """An engine with its weights loaded."""

    reported_as: str  # the name under which its features are reported
    items: int  # N, the most items an image can have
    dimension: int  # D
    extras: Mapping[str, Extra]  # what is stored beside the features
    trained: bool  # false if the network's weights were not learned
    weights: str  # SHA-256 over the network's tensors
    settings: Mapping[str, Any]  # all that its features depend on except the runtime
    backend: str  # the library that runs the network, see `backend.chosen`

    def prepare(self, image: Image.Image) -> Any:
        """Preprocess an image on the CPU. It runs in parallel to the forward pass.

        Args:
            image: Upright RGB.

        Returns:
            One element of a batch for `extract`.

        Raises:
            ImageError: If the engine cannot process the image.
        """
        ...

    def extract(self, batch: list[Any], sizes: list[tuple[int, int]]) -> Sequence[Computed]:
        """Compute the features of some images.

        Args:
            batch: Prepared images.
            sizes: Width and height of each image as decoded, in pixels.

        Returns:
            Each image's items.
        """
        ...


def bring(batch: Sequence[Computed], dtype: str) -> list[Items]:
    """Copy a batch's items to the host. All copies of a CUDA device run at once, into pinned memory."""
    found = [items if isinstance(items, Items) else OnDevice(
        _copy(rounded(items.features, dtype)), {name: _copy(each) for name, each in items.extras.items()})
        for items in batch]
    for device in {items.features.device for items in batch if isinstance(items, OnDevice)}:
        if device.type == "cuda":
            torch.cuda.current_stream(device).synchronize()  # until then the copies are on their way
    return [items if isinstance(items, Items) else in_place(items) for items in found]


def rounded(features: torch.Tensor, dtype: str) -> torch.Tensor:
    """Round features as a store does, to the dtype "float16" or "float32".

    A number beyond its range becomes an infinity, which the store refuses, also where rounding would bring it back to
    the largest number.
    """
    if dtype == "float32":
        return features
    kind: torch.dtype = getattr(torch, dtype)
    return features.to(kind).masked_fill_(features.abs() > torch.finfo(kind).max, math.inf)


def _copy(values: torch.Tensor) -> torch.Tensor:
    """Begin to copy. Memory that a CUDA device copies to without waiting is pinned, by torch."""
    return values.to("cpu", non_blocking=values.device.type == "cuda")
