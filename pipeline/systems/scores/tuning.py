"""Weights of an ensemble, chosen on the validation split."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pipeline.evaluation import retrieval
from pipeline.parts.errors import InputError
from pipeline.systems.scores.fuse import fuse
from pipeline.systems.scores.system import System

STEPS = {2: 20, 3: 10, 4: 6}
"""Members -> into how many parts the whole is cut; more members: 4."""


def tune(members: Sequence[System], on: Sequence[System], fusion: str, block_megabytes: float,
         progress: Callable[[int], object] = lambda tried: None) -> tuple[list[float], dict[str, Any]]:
    """Choose the weights with the largest RSUM on other scores of the same systems."""
    if len(on) != len(members):
        raise InputError(f"--tune-on: expected scores of the split val for each of {len(members)} members, received "
                         f"{len(on)}")
    for member, store in zip(members, on, strict=True):
        if store.made_from["split"] != "val":
            raise InputError(f"{store.path}: is of the split {store.made_from['split']}; weights are chosen on val "
                             "alone")
        if store.made_from.get("file", "none") in [each.made_from.get("file") for each in members]:
            raise InputError(f"{store.path}: is a member itself; weights are chosen on scores of val, not on "
                             "those that they are used for")
        if store.checkpoints != member.checkpoints:
            raise InputError(f"{store.path}: was not scored by the heads of {member.name}")
    best, chosen, tried = -math.inf, [1.0] * len(on), 0
    for weights in weightings(len(on)):
        rsum = retrieval.evaluate(fuse(on, fusion, weights).scores, on[0].caption_image,
                                  block_megabytes=block_megabytes).rsum
        tried += 1
        progress(tried)
        if rsum > best + 1e-9 or (rsum > best - 1e-9 and _uneven(weights) < _uneven(chosen)):
            best, chosen = rsum, weights
    return chosen, {"tried": tried, "rsum": best, "on": [store.name for store in on],
                    "seals": [store.seal for store in on]}


def weightings(members: int) -> Iterator[list[float]]:
    """List the weights that are tried: all multiples of a step that add up to 1."""
    steps = STEPS.get(members, 4)
    for parts in _sums(members, steps):
        yield [part / steps for part in parts]


def _sums(count: int, total: int) -> Iterator[list[int]]:
    if count == 1:
        yield [total]
        return
    for first in range(total + 1):
        yield from ([first, *rest] for rest in _sums(count - 1, total - first))


def _uneven(weights: Sequence[float]) -> float:
    return max(weights) - min(weights)
