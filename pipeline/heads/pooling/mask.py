"""Which slots of a padded batch hold an item."""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.errors import InputError


def valid_mask(items: Tensor, counts: Tensor) -> Tensor:
    """Check a padded batch [B, N, D] with counts [B], each in 1..N, and mark the valid slots: bool [B, N]."""
    if items.dim() != 3 or not items.is_floating_point():
        raise InputError(f"items must be floating point [B, N, D], got {items.dtype} {list(items.shape)}")
    batch, slots, _ = items.shape
    if list(counts.shape) != [batch] or counts.is_floating_point() or counts.is_complex():
        raise InputError(
            f"counts must be integers [B] = [{batch}], one for each sample, "
            f"got {counts.dtype} {list(counts.shape)}"
        )
    if batch and (int(counts.min()) < 1 or int(counts.max()) > slots):
        raise InputError(
            f"counts must lie in 1..{slots} (the items' second dimension), "
            f"got {int(counts.min())}..{int(counts.max())}"
        )
    return torch.arange(slots, device=items.device) < counts.to(items.device).unsqueeze(1)
