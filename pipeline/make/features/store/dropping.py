"""Leave out some of the items of each image or caption: VSE∞'s size augmentation."""

import numpy as np


def kept_slots(counts: np.ndarray, left_out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order the slots, int64 [B, N'], items that stay first, and count these, [B]; the first one
    always stays.
    """
    is_item = np.arange(left_out.shape[1]) < counts[:, None]
    keep = is_item & ~left_out
    is_empty = ~keep.any(axis=1)
    keep[is_empty, 0] = True
    remaining = keep.sum(axis=1)
    order = np.argsort(~keep, axis=1, kind="stable")
    return order[:, : remaining.max()], remaining.astype(np.int64)


def drop(
    items: np.ndarray, counts: np.ndarray, left_out: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Leave out some of each image's items [B, N, D] (size augmentation): what is left, padding
    zero, and counts.
    """
    order, remaining = kept_slots(counts, left_out)
    rows = np.arange(len(items))
    out = items[rows[:, None], order]
    is_padding = np.arange(order.shape[1]) >= remaining[:, None]
    out[is_padding] = 0
    return out, remaining
