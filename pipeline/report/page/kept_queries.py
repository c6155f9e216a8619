"""Which images' candidates are kept on the page: photographs make it large, so their number is a setting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, permutations, zip_longest

import numpy as np

from pipeline.report.examples import digest_order


def kept_images(files: Sequence[str], owners: Sequence[np.ndarray], ranks: Sequence[np.ndarray],
                default: tuple[int, int], count: int, top: int) -> np.ndarray:
    """Choose images by three rules, so that nobody picks them.

    A quarter are those whose queries most systems miss, half those whose queries gain most from one system to another:
    in turn for every two systems and both directions, those compared at first before the others. The rest, and what a
    rule does not use up, are the first by the SHA-256 digests of their file names.

    Args:
        files: I file names.
        owners: By direction, Int64 [Q], the row of each query's image.
        ranks: By direction, Float [S, Q], the rank of each query under each system.
        default: Positions of the two systems that are compared at first.
        count: The number of images wanted.
        top: A query whose rank is larger than this is missed.

    Returns:
        Int64, rows of images; all that have queries if there are fewer.
    """
    order = digest_order(files, np.unique(np.concatenate(list(owners))))
    pairs = sorted(permutations(range(len(ranks[0])), 2), key=lambda pair: set(pair) != set(default))
    ways = list(zip(owners, ranks, strict=True))
    missed = (_largest(owner, (of > top).sum(axis=0) + of.mean(axis=0) / (1 + of.max()), 1.0, count)
              for owner, of in ways)
    gains = (_largest(owner, of[before] - of[after], 0.0, count) for before, after in pairs for owner, of in ways)
    kept: dict[int, None] = {}
    _keep(kept, order, count - count // 2 - count // 4)
    _keep(kept, _in_turn(missed), len(kept) + count // 4)
    _keep(kept, _in_turn(gains), count)
    _keep(kept, order, count)
    return np.array(list(kept), np.int64)


def _keep(kept: dict[int, None], rows: Iterable[int], most: int) -> None:
    """Add rows until there are so many."""
    for row in rows:
        if len(kept) >= most:
            return
        kept.setdefault(row)


def _in_turn(lists: Iterable[Iterator[int]]) -> Iterator[int]:
    return (row for row in chain.from_iterable(zip_longest(*lists)) if row is not None)


def _largest(owner: np.ndarray, value: np.ndarray, above: float, count: int) -> Iterator[int]:
    """Rows of the images whose queries have a value above this, the largest first."""
    first = (-value).argsort(kind="stable")[:count]
    yield from owner[first[value[first] > above]].tolist()
