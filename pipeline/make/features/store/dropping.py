"""Leave out some of the items of each image or caption: VSE∞'s size augmentation."""

import numpy as np


def kept_slots(counts: np.ndarray, left_out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order the slots, int64 [B, N'], items that stay first, and count these, [B]; the first one
    always stays.
    """
    keep = (np.arange(left_out.shape[1]) < counts[:, None]) & ~left_out
    keep[~keep.any(axis=1), 0] = True
    remaining = keep.sum(axis=1)
    return np.argsort(~keep, axis=1, kind="stable")[:, : remaining.max()], remaining.astype(
        np.int64
    )


def drop(
    items: np.ndarray, counts: np.ndarray, left_out: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Leave out some of each image's items [B, N, D] (size augmentation): what is left, padding
    zero, and counts.
    """
    order, remaining = kept_slots(counts, left_out)
    out = items[np.arange(len(items))[:, None], order]
    out[np.arange(order.shape[1]) >= remaining[:, None]] = 0
    return out, remaining
