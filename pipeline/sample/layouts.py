"""Arrangements of a scene's things: slots, and which shapes fit into them.

A new layout is one function and one line in `LAYOUTS`. Lengths are fractions of the picture's side; x runs
to the right and y downwards, both from 0 to 1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

T = TypeVar("T")
Rng = np.random.Generator

RADIUS = {"small": 0.08, "medium": 0.115, "large": 0.165}
_STANDING = ("ball", "cube", "cone", "cylinder", "pyramid", "ring", "star", "heart", "mushroom", "mug")
FITS = {  # a slot's place: the shapes that may fill it
    "ground": (*_STANDING, "umbrella"),
    "base": ("cube", "cylinder"),  # carries what is on top
    "top": _STANDING,
    "air": ("balloon", "star", "heart", "ring"),
}


@dataclass(frozen=True)
class Slot:
    """The position of a thing, or of a row of equal ones."""

    place: str  # a key of `FITS`
    x: float  # the middle, horizontally
    y: float  # the height of its foot
    size: str  # a key of `RADIUS`
    count: int = 1  # how many equal things there are


@dataclass(frozen=True)
class Relation:
    """How two things stand to each other."""

    kind: str  # "left" (the subject is left of the object), "on", "above" or "front"
    subject: int  # index of a thing
    object: int  # index of another thing


Arrangement = tuple[list[Slot], list[Relation]]


def pick(rng: Rng, options: Sequence[T]) -> T:
    """Draw one of several options uniformly. `Generator.choice` would convert them to an array first."""
    return options[int(rng.integers(len(options)))]


def layouts_for(shape: str) -> list[Callable[[Rng], Arrangement]]:
    """Find the layouts with a slot that fits a shape."""
    return [make for make, places in LAYOUTS if any(shape in FITS[place] for place in places)]


def _beside(rng: Rng) -> Arrangement:
    """Two things side by side."""
    left = Slot("ground", rng.uniform(0.24, 0.30), _foot(rng), pick(rng, ("medium", "large")))
    right = Slot("ground", rng.uniform(0.70, 0.76), _foot(rng), pick(rng, ("small", "medium", "large")))
    return [left, right], [Relation("left", 0, 1)]


def _trio(rng: Rng) -> Arrangement:
    """Three things side by side, one of them large."""
    large = rng.integers(3)
    sizes = ["large" if k == large else pick(rng, ("small", "medium")) for k in range(3)]
    places = zip((0.19, 0.50, 0.81), sizes, strict=True)
    slots = [Slot("ground", x + rng.uniform(-0.02, 0.02), _foot(rng), size) for x, size in places]
    return slots, [Relation("left", 0, 1), Relation("left", 1, 2)]


def _stack(rng: Rng) -> Arrangement:
    """One thing on top of another, and a third at their side."""
    x, y, flip = rng.uniform(0.28, 0.34), rng.uniform(0.84, 0.90), rng.random() < 0.5
    size, smaller = pick(rng, (("medium", "small"), ("large", "medium")))
    base = Slot("base", 1 - x if flip else x, y, size)
    # A base is seen from above: what it carries rests on the middle of its upper side.
    top = Slot("top", base.x, y - 1.78 * RADIUS[size], smaller)
    third = Slot("ground", 0.26 if flip else 0.74, _foot(rng), pick(rng, ("small", "medium", "large")))
    side = Relation("left", 2, 1) if flip else Relation("left", 1, 2)
    return [top, base, third], [Relation("on", 0, 1), side]


def _hover(rng: Rng) -> Arrangement:
    """One thing in the air above another; a third at their side unless they are in the middle."""
    x = pick(rng, (0.28, 0.50, 0.72)) + rng.uniform(-0.02, 0.02)
    floating = Slot("air", x, rng.uniform(0.36, 0.40), pick(rng, ("medium", "large")))
    below = Slot("ground", x, rng.uniform(0.86, 0.90), pick(rng, ("small", "medium")))
    if abs(x - 0.5) < 0.1:
        return [floating, below], [Relation("above", 0, 1)]
    third = Slot("ground", 1 - x, _foot(rng), pick(rng, ("medium", "large")))
    side = Relation("left", 1, 2) if x < 0.5 else Relation("left", 2, 1)
    return [floating, below, third], [Relation("above", 0, 1), side]


def _depth(rng: Rng) -> Arrangement:
    """A small thing in front of a large one."""
    x, offset = rng.uniform(0.40, 0.60), pick(rng, (-1, 1)) * rng.uniform(0.15, 0.18)
    near = Slot("ground", x + offset, 0.95, "small")
    far = Slot("ground", x, rng.uniform(0.78, 0.82), "large")
    return [near, far], [Relation("front", 0, 1)]


def _row(rng: Rng) -> Arrangement:
    """Two to five equal small things in front of another."""
    near = Slot("ground", 0.5, rng.uniform(0.92, 0.95), "small", int(rng.integers(2, 6)))
    far = Slot("ground", rng.uniform(0.3, 0.7), rng.uniform(0.66, 0.70), pick(rng, ("medium", "large")))
    return [near, far], [Relation("front", 0, 1)]


def _flock(rng: Rng) -> Arrangement:
    """Two to five equal small things in the air above another."""
    floating = Slot("air", 0.5, rng.uniform(0.38, 0.42), "small", int(rng.integers(2, 6)))
    below = Slot("ground", rng.uniform(0.3, 0.7), _foot(rng), pick(rng, ("medium", "large")))
    return [floating, below], [Relation("above", 0, 1)]


LAYOUTS: tuple[tuple[Callable[[Rng], Arrangement], tuple[str, ...]], ...] = (  # and the places of their slots
    (_beside, ("ground",)),
    (_trio, ("ground",)),
    (_stack, ("top", "base", "ground")),
    (_hover, ("air", "ground")),
    (_depth, ("ground",)),
    (_row, ("ground",)),
    (_flock, ("air", "ground")),
)


def _foot(rng: Rng) -> float:
    return rng.uniform(0.80, 0.88)
