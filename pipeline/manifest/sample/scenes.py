"""The content of a scene: the facts that its picture shows (paint.py) and its captions tell
(wording.py).

What a scene may hold, with its looks and its names, is listed in scenes.yaml.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, TypeVar

import numpy as np

from pipeline.files.parsing import from_yaml

T = TypeVar("T")
Rng = np.random.Generator
Arrangement = tuple[list["Slot"], list["Relation"]]
_FILE = resources.files("pipeline.manifest.sample") / "scenes.yaml"
WORLD: dict[str, Any] = from_yaml(_FILE.read_text(encoding="utf-8"))
COLOURS, TEXTURES, FITS, DETAILS = (
    WORLD[name] for name in ("colours", "textures", "fits", "details")
)
SHAPES = tuple(dict.fromkeys(FITS["ground"] + FITS["air"]))
RADIUS = {"small": 0.08, "medium": 0.115, "large": 0.165}


@dataclass(frozen=True)
class Setting:
    """Where a scene takes place."""

    moods: dict[str, list[str]]  # its skies, seasons or wall colours -> what captions say of them
    details: list[str]  # what may be in the background
    hides: list[str]  # colours that would not stand out against it
    where: list[str]  # where captions say that things are
    names: list[str]  # what captions call the setting itself
    backdrop: list[list[Any]]  # the steps in which it is drawn


SETTINGS = {name: Setting(**about) for name, about in WORLD["settings"].items()}


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
    """The position of one thing relative to another."""

    kind: str  # "left" (the subject is left of the object), "on", "above" or "front"
    subject: int  # index of a thing
    object: int  # index of another thing


@dataclass(frozen=True)
class Thing:
    """What fills a slot."""

    shape: str  # a name in `SHAPES`
    colour: str  # a key of `COLOURS`
    texture: str  # a key of `TEXTURES`
    accent: str  # the second colour of its pattern, "" without one
    slot: Slot  # where it stands

    @property
    def radius(self) -> float:
        """Half its height."""
        return RADIUS[self.slot.size]

    @property
    def top(self) -> float:
        """The height of its upper end."""
        return self.slot.y - 2 * self.radius

    @property
    def xs(self) -> list[float]:
        """The centres of its copies, from left to right."""
        first = self.slot.x - (self.slot.count - 1) / 2 * 2.35 * self.radius
        return [first + k * 2.35 * self.radius for k in range(self.slot.count)]


@dataclass(frozen=True)
class Scene:
    """A scene. No two things share a shape or a colour, and no wall has the colour of a thing."""

    setting: str  # a key of `SETTINGS`
    mood: str  # one of the setting's moods
    detail: str  # one of the setting's details, "" for none
    things: tuple[
        Thing, ...
    ]  # the first is the theme, which with the setting distinguishes the scene from the others
    relations: tuple[Relation, ...]  # of things, by their indices


def pick(rng: Rng, options: Sequence[T]) -> T:
    """Draw one of several options uniformly. `Generator.choice` would convert them to an array
    first.
    """
    return options[int(rng.integers(len(options)))]


def compose(seed: int, index: int) -> Scene:
    """Make up a scene. It depends on the two arguments alone."""
    # The themes run through a permutation of all combinations, so no two scenes of a corpus of up
    # to `len(themes(seed))` have the same theme.
    rng = np.random.default_rng([seed, index, 0])
    every = themes(seed)
    name, shape, colour = every[index % len(every)]
    setting = SETTINGS[name]
    layouts = [
        make for make, kinds in LAYOUTS.items() if any(shape in FITS[place] for place in kinds)
    ]
    slots, relations = pick(rng, layouts)(rng)
    theme = pick(rng, [k for k, slot in enumerate(slots) if shape in FITS[slot.place]])
    things = {theme: _thing(rng, slots[theme], shape, colour)}
    free = [k for k in range(len(slots)) if k != theme]
    for k in sorted(
        free, key=lambda k: len(FITS[slots[k].place])
    ):  # slots that few shapes fit are filled first
        used = {each.shape for each in things.values()} | {each.colour for each in things.values()}
        another = pick(rng, [each for each in FITS[slots[k].place] if each not in used])
        things[k] = _thing(
            rng,
            slots[k],
            another,
            pick(rng, [c for c in COLOURS if c not in {*used, *setting.hides}]),
        )
    order = list(things)
    relations = [Relation(r.kind, order.index(r.subject), order.index(r.object)) for r in relations]
    mood = pick(rng, [m for m in setting.moods if m not in {t.colour for t in things.values()}])
    details = [
        detail for detail in setting.details if mood in WORLD["weather"].get(detail, (mood,))
    ]
    detail = "" if rng.random() < 0.25 else pick(rng, details)
    return Scene(name, mood, detail, tuple(things.values()), tuple(relations))


@lru_cache(maxsize=4)
def themes(seed: int) -> tuple[tuple[str, str, str], ...]:
    """List all themes whose colour stands out against the setting."""
    every = [
        (a, b, c) for a in SETTINGS for b in SHAPES for c in COLOURS if c not in SETTINGS[a].hides
    ]
    return tuple(every[k] for k in np.random.default_rng([seed]).permutation(len(every)))


def _thing(rng: Rng, slot: Slot, shape: str, colour: str) -> Thing:
    texture = pick(rng, tuple(TEXTURES))
    accent = "" if texture == "plain" else pick(rng, COLOURS[colour]["accents"])
    return Thing(shape, colour, texture, accent, slot)


# Arrangements of a scene's things. A new one is one function and one line in `LAYOUTS`.
def _beside(rng: Rng) -> Arrangement:
    left = Slot("ground", rng.uniform(0.24, 0.30), _foot(rng), pick(rng, ("medium", "large")))
    right = Slot(
        "ground", rng.uniform(0.70, 0.76), _foot(rng), pick(rng, ("small", "medium", "large"))
    )
    return [left, right], [Relation("left", 0, 1)]


def _trio(rng: Rng) -> Arrangement:
    large = rng.integers(3)
    sizes = ["large" if k == large else pick(rng, ("small", "medium")) for k in range(3)]
    thirds = zip((0.19, 0.50, 0.81), sizes, strict=True)
    slots = [Slot("ground", x + rng.uniform(-0.02, 0.02), _foot(rng), size) for x, size in thirds]
    return slots, [Relation("left", 0, 1), Relation("left", 1, 2)]


def _stack(rng: Rng) -> Arrangement:
    x, y, flip = rng.uniform(0.28, 0.34), rng.uniform(0.84, 0.90), rng.random() < 0.5
    size, smaller = pick(rng, (("medium", "small"), ("large", "medium")))
    base = Slot("base", 1 - x if flip else x, y, size)
    # A base is seen from above: what it carries rests on the middle of its upper side.
    top = Slot("top", base.x, y - 1.78 * RADIUS[size], smaller)
    third = Slot(
        "ground", 0.26 if flip else 0.74, _foot(rng), pick(rng, ("small", "medium", "large"))
    )
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
    far = Slot(
        "ground", rng.uniform(0.3, 0.7), rng.uniform(0.66, 0.70), pick(rng, ("medium", "large"))
    )
    return [near, far], [Relation("front", 0, 1)]


def _flock(rng: Rng) -> Arrangement:
    """Two to five equal small things in the air above another."""
    floating = Slot("air", 0.5, rng.uniform(0.38, 0.42), "small", int(rng.integers(2, 6)))
    below = Slot("ground", rng.uniform(0.3, 0.7), _foot(rng), pick(rng, ("medium", "large")))
    return [floating, below], [Relation("above", 0, 1)]


def _foot(rng: Rng) -> float:
    return rng.uniform(0.80, 0.88)


LAYOUTS: dict[Callable[[Rng], Arrangement], tuple[str, ...]] = {  # and the places of their slots
    _beside: ("ground",),
    _trio: ("ground",),
    _stack: ("top", "base", "ground"),
    _hover: ("air", "ground"),
    _depth: ("ground",),
    _row: ("ground",),
    _flock: ("air", "ground"),
}
