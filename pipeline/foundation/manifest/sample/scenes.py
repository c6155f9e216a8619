"""The content of a scene: the facts that its picture shows (paint.py) and its captions tell
(wording.py).

What a scene may hold, with its looks and its names, is listed in scenes.yaml.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import product
from typing import Any, TypeVar

import numpy as np

from pipeline.foundation.files.parsing import from_yaml

T = TypeVar("T")
Rng = np.random.Generator
Arrangement = tuple[list["Slot"], list["Relation"]]
_FILE = resources.files("pipeline.foundation.manifest.sample") / "scenes.yaml"
WORLD: dict[str, Any] = from_yaml(_FILE.read_text(encoding="utf-8"))
COLOURS = WORLD["colours"]
TEXTURES = WORLD["textures"]
FITS = WORLD["fits"]
DETAILS = WORLD["details"]
SHAPES = tuple(dict.fromkeys(FITS["ground"] + FITS["air"]))
RADIUS = {"small": 0.08, "medium": 0.115, "large": 0.165}
ALL_SIZES = tuple(RADIUS)
SMALLER = ("small", "medium")
LARGER = ("medium", "large")


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
        count = self.slot.count
        radius = self.radius
        from_middle = (count - 1) / 2 * 2.35 * radius
        first = self.slot.x - from_middle
        return [first + k * 2.35 * radius for k in range(count)]


@dataclass(frozen=True)
class Scene:
    """A scene. No two things share a shape or a colour, and no wall has the colour of a thing."""

    setting: str  # a key of `SETTINGS`
    mood: str  # one of the setting's moods
    detail: str  # one of the setting's details, "" for none
    # The first is the theme, which with the setting distinguishes the scene from the others.
    things: tuple[Thing, ...]
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
    all_themes = themes(seed)
    name, shape, colour = all_themes[index % len(all_themes)]
    setting = SETTINGS[name]
    layouts = [make for make, places in LAYOUTS.items() if _fits_any(shape, places)]
    arrange = pick(rng, layouts)
    slots, relations = arrange(rng)
    fitting = [k for k, slot in enumerate(slots) if shape in FITS[slot.place]]
    theme = pick(rng, fitting)
    first = _thing(rng, slots[theme], shape, colour)
    things = _fill(rng, slots, theme, first, setting)
    colours = {thing.colour for thing in things.values()}
    moods = [mood for mood in setting.moods if mood not in colours]
    mood = pick(rng, moods)
    detail = ""
    if rng.random() >= 0.25:
        weather = WORLD["weather"]
        details = [name for name in setting.details if mood in weather.get(name, (mood,))]
        detail = pick(rng, details)
    renumbered = _renumbered(relations, list(things))
    return Scene(name, mood, detail, tuple(things.values()), renumbered)


def _renumbered(relations: list[Relation], order: list[int]) -> tuple[Relation, ...]:
    """Relations between slots as relations between the things that fill them in this order."""
    of_things = []
    for relation in relations:
        subject = order.index(relation.subject)
        other = order.index(relation.object)
        of_things.append(Relation(relation.kind, subject, other))
    return tuple(of_things)


def _fits_any(shape: str, places: Sequence[str]) -> bool:
    return any(shape in FITS[place] for place in places)


def _fill(
    rng: Rng, slots: list[Slot], theme: int, first: Thing, setting: Setting
) -> dict[int, Thing]:
    """Put the first thing into the theme's slot and others into the rest: index of a slot ->
    thing.
    """
    things = {theme: first}
    free = [k for k in range(len(slots)) if k != theme]
    # Slots that few shapes fit are filled first.
    free.sort(key=lambda k: len(FITS[slots[k].place]))
    for k in free:
        shapes = {thing.shape for thing in things.values()}
        colours = {thing.colour for thing in things.values()}
        excluded = colours.union(setting.hides)
        fitting = FITS[slots[k].place]
        other_shapes = [shape for shape in fitting if shape not in shapes]
        shape = pick(rng, other_shapes)
        other_colours = [colour for colour in COLOURS if colour not in excluded]
        colour = pick(rng, other_colours)
        things[k] = _thing(rng, slots[k], shape, colour)
    return things


@lru_cache(maxsize=4)
def themes(seed: int) -> tuple[tuple[str, str, str], ...]:
    """List all themes whose colour stands out against the setting."""
    combinations = []
    for setting, shape, colour in product(SETTINGS, SHAPES, COLOURS):
        if colour not in SETTINGS[setting].hides:
            combinations.append((setting, shape, colour))
    order = np.random.default_rng([seed]).permutation(len(combinations))
    return tuple(combinations[k] for k in order)


def _thing(rng: Rng, slot: Slot, shape: str, colour: str) -> Thing:
    texture = pick(rng, tuple(TEXTURES))
    accent = ""
    if texture != "plain":
        accent = pick(rng, COLOURS[colour]["accents"])
    return Thing(shape, colour, texture, accent, slot)


# Arrangements of a scene's things. A new one is one function and one line in `LAYOUTS`.
def _beside(rng: Rng) -> Arrangement:
    left = _standing(rng, rng.uniform(0.24, 0.30), LARGER)
    right = _standing(rng, rng.uniform(0.70, 0.76), ALL_SIZES)
    return [left, right], [Relation("left", 0, 1)]


def _trio(rng: Rng) -> Arrangement:
    large = rng.integers(3)
    sizes = []
    for k in range(3):
        size = "large"
        if k != large:
            size = pick(rng, SMALLER)
        sizes.append(size)
    slots = []
    for x, size in zip((0.19, 0.50, 0.81), sizes, strict=True):
        shifted = x + rng.uniform(-0.02, 0.02)
        slots.append(Slot("ground", shifted, _foot(rng), size))
    return slots, [Relation("left", 0, 1), Relation("left", 1, 2)]


def _stack(rng: Rng) -> Arrangement:
    x = rng.uniform(0.28, 0.34)
    y = rng.uniform(0.84, 0.90)
    is_flipped = rng.random() < 0.5
    size, smaller = pick(rng, (("medium", "small"), ("large", "medium")))
    if is_flipped:
        x = 1 - x
        third_x = 0.26
        side = Relation("left", 2, 1)
    else:
        third_x = 0.74
        side = Relation("left", 1, 2)
    base = Slot("base", x, y, size)
    # A base is seen from above: what it carries rests on the middle of its upper side.
    upper_side = y - 1.78 * RADIUS[size]
    top = Slot("top", x, upper_side, smaller)
    third = _standing(rng, third_x, ALL_SIZES)
    return [top, base, third], [Relation("on", 0, 1), side]


def _hover(rng: Rng) -> Arrangement:
    """One thing in the air above another; a third at their side unless they are in the middle."""
    x = pick(rng, (0.28, 0.50, 0.72))
    x += rng.uniform(-0.02, 0.02)
    height = rng.uniform(0.36, 0.40)
    floating = Slot("air", x, height, pick(rng, LARGER))
    foot = rng.uniform(0.86, 0.90)
    below = Slot("ground", x, foot, pick(rng, SMALLER))
    above = Relation("above", 0, 1)
    if abs(x - 0.5) < 0.1:
        return [floating, below], [above]
    third = _standing(rng, 1 - x, LARGER)
    side = Relation("left", 2, 1)
    if x < 0.5:
        side = Relation("left", 1, 2)
    return [floating, below, third], [above, side]


def _depth(rng: Rng) -> Arrangement:
    """A small thing in front of a large one."""
    x = rng.uniform(0.40, 0.60)
    side = pick(rng, (-1, 1))
    offset = side * rng.uniform(0.15, 0.18)
    near = Slot("ground", x + offset, 0.95, "small")
    foot = rng.uniform(0.78, 0.82)
    far = Slot("ground", x, foot, "large")
    return [near, far], [Relation("front", 0, 1)]


def _row(rng: Rng) -> Arrangement:
    """Two to five equal small things in front of another."""
    foot = rng.uniform(0.92, 0.95)
    count = int(rng.integers(2, 6))
    near = Slot("ground", 0.5, foot, "small", count)
    x = rng.uniform(0.3, 0.7)
    y = rng.uniform(0.66, 0.70)
    far = Slot("ground", x, y, pick(rng, LARGER))
    return [near, far], [Relation("front", 0, 1)]


def _flock(rng: Rng) -> Arrangement:
    """Two to five equal small things in the air above another."""
    height = rng.uniform(0.38, 0.42)
    count = int(rng.integers(2, 6))
    floating = Slot("air", 0.5, height, "small", count)
    below = _standing(rng, rng.uniform(0.3, 0.7), LARGER)
    return [floating, below], [Relation("above", 0, 1)]


def _standing(rng: Rng, x: float, sizes: Sequence[str]) -> Slot:
    """A slot on the ground, of one of several sizes."""
    return Slot("ground", x, _foot(rng), pick(rng, sizes))


def _foot(rng: Rng) -> float:
    return rng.uniform(0.80, 0.88)


# Arrangement -> the places of its slots.
LAYOUTS: dict[Callable[[Rng], Arrangement], tuple[str, ...]] = {
    _beside: ("ground",),
    _trio: ("ground",),
    _stack: ("top", "base", "ground"),
    _hover: ("air", "ground"),
    _depth: ("ground",),
    _row: ("ground",),
    _flock: ("air", "ground"),
}
