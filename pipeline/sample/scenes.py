"""What is in a scene: the facts that the picture shows (paint.py) and that the captions tell (wording.py).

Lengths are fractions of the picture's side; x runs to the right and y downwards, both from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

import numpy as np

T = TypeVar("T")

# Colours, and for each the second colours that stand out against it in a pattern.
COLOURS = {
    "red": ("white", "yellow", "black"),
    "orange": ("white", "black", "blue"),
    "yellow": ("black", "red", "blue"),
    "green": ("white", "yellow", "black"),
    "blue": ("white", "yellow", "orange"),
    "purple": ("white", "yellow", "orange"),
    "pink": ("white", "black", "purple"),
    "white": ("red", "blue", "black"),
    "black": ("white", "yellow", "pink"),
    "brown": ("white", "yellow", "turquoise"),
    "turquoise": ("white", "black", "pink"),
}
TEXTURES = ("plain", "striped", "spotted", "checked")
RADIUS = {"small": 0.08, "medium": 0.115, "large": 0.165}

# The shapes that fit a place: on the ground, as a base that carries something, on top of a base, in the air.
FITS = {
    "ground": (
        "ball", "cube", "cone", "cylinder", "pyramid", "ring", "star", "heart", "mushroom", "mug", "umbrella",
    ),
    "base": ("cube", "cylinder"),
    "top": ("ball", "cube", "cone", "cylinder", "pyramid", "ring", "star", "heart", "mushroom", "mug"),
    "air": ("balloon", "star", "heart", "ring"),
}  # fmt: skip
SHAPES = tuple(dict.fromkeys(FITS["ground"] + FITS["air"]))


@dataclass(frozen=True)
class Setting:
    """Where a scene takes place: `moods` are its skies or the colours of its walls, `details` what may stand in the
    background, `hides` the colours that would be lost before it."""

    moods: tuple[str, ...]
    details: tuple[str, ...]
    hides: tuple[str, ...]


_SKIES = ("clear", "overcast", "sunset")
SETTINGS = {
    "meadow": Setting(_SKIES, ("trees", "rainbow", "flowers", "birds"), ("green",)),
    "beach": Setting(_SKIES, ("sailboat", "palm", "birds"), ("yellow", "orange")),
    "desert": Setting(_SKIES, ("cactus", "palm", "birds"), ("orange", "brown", "yellow")),
    "snow": Setting(_SKIES, ("pines", "mountains", "snowfall"), ("white",)),
    "dock": Setting(_SKIES, ("mountains", "sailboat", "birds"), ("brown",)),
    "city": Setting(_SKIES, ("street lamp", "birds"), ("black",)),
    "forest": Setting(("green", "autumn"), ("mist", "flowers"), ("green", "brown", "orange")),
    "night": Setting(("night",), ("moon", "crescent", "campfire"), ("black", "purple")),
    "space": Setting(("night",), ("planet", "rocket"), ("black",)),
    "room": Setting(("blue", "green", "pink", "yellow"), ("window", "painting", "floor lamp"), ("brown",)),
    "kitchen": Setting(("white", "blue", "green"), ("window", "shelf"), ("white",)),
    "stage": Setting(("red", "blue", "purple", "green"), ("spotlight",), ("brown",)),
}


@dataclass(frozen=True)
class Thing:
    """One object, or a row of `count` equal ones around `x`. `y` is where it rests, or would if it fell straight
    down by one radius when it is in the air; `accent` is the second colour of its pattern ("" if plain)."""

    shape: str
    colour: str
    texture: str
    accent: str
    size: str
    place: str
    x: float
    y: float
    count: int = 1

    @property
    def radius(self) -> float:
        return RADIUS[self.size]

    @property
    def top(self) -> float:
        return self.y - 2 * self.radius

    @property
    def xs(self) -> list[float]:
        """The centres of its `count` copies, from left to right."""
        return [self.x + (k - (self.count - 1) / 2) * 2.35 * self.radius for k in range(self.count)]


@dataclass(frozen=True)
class Relation:
    """`kind` is "left" (subject left of object), "on", "above" or "front"; the two are indices into `Scene.things`."""

    kind: str
    subject: int
    object: int


@dataclass(frozen=True)
class Scene:
    """Everything there is to see. `things[0]` is the theme: with the setting it tells the scene from all others."""

    setting: str
    mood: str
    detail: str
    things: tuple[Thing, ...]
    relations: tuple[Relation, ...]


@dataclass(frozen=True)
class _Slot:
    place: str
    x: float
    y: float
    size: str
    count: int = 1


_Layout = tuple[list[_Slot], list[Relation]]


def compose(seed: int, index: int) -> Scene:
    """Scene number `index` of the corpus `seed`; it depends on these two alone.

    Themes (setting, shape, colour) run through a permutation of all combinations, so that no two scenes of any corpus
    smaller than `len(themes(seed))` share theirs.
    """
    rng = np.random.default_rng([seed, index, 0])
    every = themes(seed)
    setting, shape, colour = every[index % len(every)]
    slots, relations = pick(rng, [make for make, places in _LAYOUTS if _fits_any(shape, places)])(rng)
    theme = pick(rng, [k for k, slot in enumerate(slots) if shape in FITS[slot.place]])
    taken: dict[int, Thing] = {theme: _thing(rng, slots[theme], shape, colour)}
    rest = [k for k in range(len(slots)) if k != theme]
    for k in sorted(rest, key=lambda k: len(FITS[slots[k].place])):  # places that few shapes fit come first
        others = list(taken.values())
        shapes = [s for s in FITS[slots[k].place] if s not in {t.shape for t in others}]
        hidden = {t.colour for t in others} | set(SETTINGS[setting].hides)
        taken[k] = _thing(
            rng, slots[k], pick(rng, shapes), pick(rng, [c for c in COLOURS if c not in hidden])
        )
    order = list(taken)  # the theme comes first
    relations = [Relation(r.kind, order.index(r.subject), order.index(r.object)) for r in relations]
    used = {thing.colour for thing in taken.values()}
    mood = pick(rng, [m for m in SETTINGS[setting].moods if m not in used])
    return Scene(setting, mood, _detail(rng, setting, mood), tuple(taken.values()), tuple(relations))


@lru_cache(maxsize=4)
def themes(seed: int) -> tuple[tuple[str, str, str], ...]:
    """All (setting, shape, colour) in which the colour stands out against the setting, in the order of this seed."""
    every = [(a, b, c) for a in SETTINGS for b in SHAPES for c in COLOURS if c not in SETTINGS[a].hides]
    return tuple(every[k] for k in np.random.default_rng([seed]).permutation(len(every)))


def pick(rng: np.random.Generator, options: Sequence[T]) -> T:
    """One of the options, uniformly. (`Generator.choice` would turn them into an array first.)"""
    return options[int(rng.integers(len(options)))]


def _thing(rng: np.random.Generator, slot: _Slot, shape: str, colour: str) -> Thing:
    texture = pick(rng, TEXTURES)
    accent = "" if texture == "plain" else pick(rng, COLOURS[colour])
    return Thing(shape, colour, texture, accent, slot.size, slot.place, slot.x, slot.y, slot.count)


def _detail(rng: np.random.Generator, setting: str, mood: str) -> str:
    """One background detail, or "" in a quarter of the scenes; no rainbow without daylight."""
    options = [d for d in SETTINGS[setting].details if not (d == "rainbow" and mood == "sunset")]
    return "" if rng.random() < 0.25 else pick(rng, options)


def _fits_any(shape: str, places: tuple[str, ...]) -> bool:
    return any(shape in FITS[place] for place in places)


def _beside(rng: np.random.Generator) -> _Layout:
    slots = [
        _Slot("ground", rng.uniform(0.24, 0.30), rng.uniform(0.80, 0.88), pick(rng, ("medium", "large"))),
        _Slot(
            "ground",
            rng.uniform(0.70, 0.76),
            rng.uniform(0.80, 0.88),
            pick(rng, ("small", "medium", "large")),
        ),
    ]
    return slots, [Relation("left", 0, 1)]


def _trio(rng: np.random.Generator) -> _Layout:
    large = rng.integers(3)
    slots = [
        _Slot("ground", x + rng.uniform(-0.02, 0.02), rng.uniform(0.78, 0.90), "large" if k == large else
              pick(rng, ("small", "medium")))
        for k, x in enumerate((0.19, 0.5, 0.81))
    ]  # fmt: skip
    return slots, [Relation("left", 0, 1), Relation("left", 1, 2)]


def _stack(rng: np.random.Generator) -> _Layout:
    size = pick(rng, ("medium", "large"))
    flip = rng.random() < 0.5
    x, y = rng.uniform(0.28, 0.34), rng.uniform(0.84, 0.90)
    base = _Slot("base", 1 - x if flip else x, y, size)
    # A base shows its upper side from above; what it carries rests on the middle of that side.
    top = replace(
        base, place="top", y=y - 1.78 * RADIUS[size], size="small" if size == "medium" else "medium"
    )
    third = _Slot(
        "ground", 0.26 if flip else 0.74, rng.uniform(0.80, 0.88), pick(rng, ("small", "medium", "large"))
    )
    side = Relation("left", 2, 1) if flip else Relation("left", 1, 2)
    return [top, base, third], [Relation("on", 0, 1), side]


def _hover(rng: np.random.Generator) -> _Layout:
    x = pick(rng, (0.28, 0.5, 0.72)) + rng.uniform(-0.02, 0.02)
    slots = [
        _Slot("air", x, rng.uniform(0.36, 0.40), pick(rng, ("medium", "large"))),
        _Slot("ground", x, rng.uniform(0.86, 0.90), pick(rng, ("small", "medium"))),
    ]
    if abs(x - 0.5) < 0.1:
        return slots, [Relation("above", 0, 1)]
    slots.append(_Slot("ground", 1 - x, rng.uniform(0.80, 0.88), pick(rng, ("medium", "large"))))
    return slots, [Relation("above", 0, 1), Relation("left", 1, 2) if x < 0.5 else Relation("left", 2, 1)]


def _depth(rng: np.random.Generator) -> _Layout:
    x = rng.uniform(0.40, 0.60)
    side = pick(rng, (-1, 1)) * rng.uniform(0.15, 0.18)
    slots = [_Slot("ground", x + side, 0.95, "small"), _Slot("ground", x, rng.uniform(0.78, 0.82), "large")]
    return slots, [Relation("front", 0, 1)]


def _row(rng: np.random.Generator) -> _Layout:
    slots = [
        _Slot("ground", 0.5, rng.uniform(0.92, 0.95), "small", int(rng.integers(2, 6))),
        _Slot("ground", rng.uniform(0.3, 0.7), rng.uniform(0.66, 0.70), pick(rng, ("medium", "large"))),
    ]
    return slots, [Relation("front", 0, 1)]


def _flock(rng: np.random.Generator) -> _Layout:
    slots = [
        _Slot("air", 0.5, rng.uniform(0.38, 0.42), "small", int(rng.integers(2, 6))),
        _Slot("ground", rng.uniform(0.3, 0.7), rng.uniform(0.80, 0.88), pick(rng, ("medium", "large"))),
    ]
    return slots, [Relation("above", 0, 1)]


_LAYOUTS: tuple[tuple[Callable[[np.random.Generator], _Layout], tuple[str, ...]], ...] = (
    (_beside, ("ground",)),
    (_trio, ("ground",)),
    (_stack, ("top", "base", "ground")),
    (_hover, ("air", "ground")),
    (_depth, ("ground",)),
    (_row, ("ground",)),
    (_flock, ("air", "ground")),
)
