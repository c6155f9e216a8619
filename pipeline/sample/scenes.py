"""The content of a scene: the facts that its picture shows (paint.py) and its captions tell (wording.py)."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pipeline.sample.layouts import FITS, RADIUS, Relation, Slot, layouts_for, pick

COLOURS = {  # and for each the second colours that stand out against it in a pattern
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
SHAPES = tuple(dict.fromkeys(FITS["ground"] + FITS["air"]))


@dataclass(frozen=True)
class Setting:
    """Where a scene takes place."""

    moods: tuple[str, ...]  # its skies, seasons or wall colours
    details: tuple[str, ...]  # what may be in the background
    hides: tuple[str, ...]  # colours that would not stand out against it


_SKIES = ("clear", "overcast", "sunset")
SETTINGS = {
    "meadow": Setting(_SKIES, ("trees", "rainbow", "flowers", "birds"), ("green",)),
    "beach": Setting(_SKIES, ("sailboat", "palm", "birds"), ("yellow", "orange")),
    "desert": Setting(_SKIES, ("cactus", "palm", "birds"), ("orange", "brown", "yellow")),
    "snow": Setting(_SKIES, ("pines", "mountains", "snowfall"), ("white",)),
    "dock": Setting(_SKIES, ("mountains", "sailboat", "birds"), ("brown",)),
    "city": Setting(_SKIES, ("street lamp", "birds"), ("black",)),
    "forest": Setting(("summer", "autumn"), ("mist", "flowers"), ("green", "brown", "orange")),
    "night": Setting(("night",), ("moon", "crescent", "campfire"), ("black", "purple")),
    "space": Setting(("night",), ("planet", "rocket"), ("black",)),
    "room": Setting(("blue", "green", "pink", "yellow"), ("window", "painting", "floor lamp"), ("brown",)),
    "kitchen": Setting(("white", "blue", "green"), ("window", "shelf"), ("white",)),
    "stage": Setting(("red", "blue", "purple", "green"), ("spotlight",), ("brown",)),
}
WEATHER = {"rainbow": ("clear", "overcast"), "snowfall": ("overcast",)}  # details that not every sky has


@dataclass(frozen=True)
class Thing:
    """What fills a slot."""

    shape: str  # a name in `SHAPES`
    colour: str  # a key of `COLOURS`
    texture: str  # one of `TEXTURES`
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
    """A scene. No two things share a shape or a colour, and no wall has the colour of a thing.

    Attributes:
        setting: A key of `SETTINGS`.
        mood: One of the setting's moods.
        detail: One of the setting's details, "" for none.
        things: The things; the first is the theme, which with the setting distinguishes the scene from the others.
        relations: Relations between things, by their indices.
    """

    setting: str
    mood: str
    detail: str
    things: tuple[Thing, ...]
    relations: tuple[Relation, ...]


def compose(seed: int, index: int) -> Scene:
    """Make up a scene. It depends on the two arguments alone.

    The themes run through a permutation of all combinations, so no two scenes of a corpus of up to `len(themes(seed))`
    share theirs.
    """
    rng = np.random.default_rng([seed, index, 0])
    every = themes(seed)
    setting, shape, colour = every[index % len(every)]
    slots, relations = pick(rng, layouts_for(shape))(rng)
    theme = pick(rng, [k for k, slot in enumerate(slots) if shape in FITS[slot.place]])
    things = {theme: _thing(rng, slots[theme], shape, colour)}
    others = [k for k in range(len(slots)) if k != theme]
    for k in sorted(others, key=lambda k: len(FITS[slots[k].place])):  # what few shapes fit is filled first
        things[k] = _another(rng, slots[k], list(things.values()), SETTINGS[setting].hides)
    order = list(things)
    relations = [Relation(r.kind, order.index(r.subject), order.index(r.object)) for r in relations]
    mood = pick(rng, [m for m in SETTINGS[setting].moods if m not in {t.colour for t in things.values()}])
    return Scene(setting, mood, _detail(rng, setting, mood), tuple(things.values()), tuple(relations))


@lru_cache(maxsize=4)
def themes(seed: int) -> tuple[tuple[str, str, str], ...]:
    """List all themes whose colour stands out against the setting."""
    every = [(a, b, c) for a in SETTINGS for b in SHAPES for c in COLOURS if c not in SETTINGS[a].hides]
    return tuple(every[k] for k in np.random.default_rng([seed]).permutation(len(every)))


def _thing(rng: np.random.Generator, slot: Slot, shape: str, colour: str) -> Thing:
    texture = pick(rng, TEXTURES)
    accent = "" if texture == "plain" else pick(rng, COLOURS[colour])
    return Thing(shape, colour, texture, accent, slot)


def _another(rng: np.random.Generator, slot: Slot, others: list[Thing], hides: tuple[str, ...]) -> Thing:
    shapes = [shape for shape in FITS[slot.place] if shape not in {other.shape for other in others}]
    taken = {other.colour for other in others} | set(hides)
    return _thing(
        rng, slot, pick(rng, shapes), pick(rng, [colour for colour in COLOURS if colour not in taken])
    )


def _detail(rng: np.random.Generator, setting: str, mood: str) -> str:
    """Something in the background, or "" in a quarter of the scenes."""
    options = [detail for detail in SETTINGS[setting].details if mood in WEATHER.get(detail, (mood,))]
    return "" if rng.random() < 0.25 else pick(rng, options)
