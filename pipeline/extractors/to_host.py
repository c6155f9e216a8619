"""From the network's device to the host's memory: rounded before they are copied, which halves the copy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from pipeline.extractors.base import Computed, Items, OnDevice, in_place


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
