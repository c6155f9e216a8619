"""Which images' candidates are kept on the page: photographs make it large, so their number is a setting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, permutations, zip_longest

import numpy as np

from pipeline.report.examples import digest_order


def kept_images(files: Sequence[str], owners: Sequence[np.ndarray], ranks: Sequence[np.ndarray],
                default: tuple[int, int], count: int) -> np.ndarray:
    """Choose images by two rules, so that nobody picks them.

    Half are the first by the SHA-256 digests of their file names. The others are those whose queries gain most from one
    system to another: in turn for every two systems and both directions, those compared at first before the others.

    Args:
        files: I file names.
        owners: By direction, Int64 [Q], the row of each query's image.
        ranks: By direction, Float [S, Q], the rank of each query under each system.
        default: Positions of the two systems that are compared at first.
        count: The number of images wanted.

    Returns:
        Int64, rows of images; all that have queries if there are fewer.
    """
    order = digest_order(files, np.unique(np.concatenate(list(owners))))
    pairs = sorted(permutations(range(len(ranks[0])), 2), key=lambda pair: set(pair) != set(default))
    gains = (_by_gain(owner, of[before] - of[after], count) for before, after in pairs
             for owner, of in zip(owners, ranks, strict=True))
    kept = dict.fromkeys(order[:count - count // 2])
    for row in chain(chain.from_iterable(zip_longest(*gains)), order):
        if len(kept) >= count:
            break
        if row is not None:
            kept.setdefault(row)
    return np.array(list(kept), np.int64)


def _by_gain(owner: np.ndarray, gain: np.ndarray, count: int) -> Iterator[int]:
    """Rows of the images whose queries gain, the largest gain first."""
    first = (-gain).argsort(kind="stable")[:count]
    yield from owner[first[gain[first] > 0]].tolist()
