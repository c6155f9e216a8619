"""How the camera moves in a shot, and captions that tell of it, in which the order of frames matters."""

from dataclasses import dataclass

import numpy as np

from pipeline.sample import vocabulary
from pipeline.sample.layouts import pick
from pipeline.sample.scenes import Scene, Thing

Window = tuple[float, float, float, float]
"""Left, top, right and bottom of what is seen, in fractions of the scene's side."""


@dataclass(frozen=True)
class Movement:
    """A movement from one window to another."""

    opposite: str  # the movement backwards, a key of `MOVEMENTS`
    first: Window  # what is seen first
    last: Window  # what is seen last
    phrases: tuple[str, ...]  # how it is told

    def at(self, time: float) -> Window:
        """Find what is seen at a time."""
        left, top, right, bottom = ((1 - time) * a + time * b for a, b in zip(self.first, self.last, strict=True))
        return left, top, right, bottom


LEFT, RIGHT, TOP, BOTTOM = (0.0, 0.2, 0.6, 0.8), (0.4, 0.2, 1.0, 0.8), (0.2, 0.0, 0.8, 0.6), (0.2, 0.4, 0.8, 1.0)
WHOLE, MIDDLE = (0.0, 0.0, 1.0, 1.0), (0.27, 0.34, 0.77, 0.84)
MOVEMENTS = {
    "right": Movement("left", LEFT, RIGHT, ("from left to right",)),
    "left": Movement("right", RIGHT, LEFT, ("from right to left",)),
    "down": Movement("up", TOP, BOTTOM, ("from top to bottom", "downwards")),
    "up": Movement("down", BOTTOM, TOP, ("from bottom to top", "upwards")),
    "closer": Movement("away", WHOLE, MIDDLE, ("closer and closer", "nearer to the middle")),
    "away": Movement("closer", MIDDLE, WHOLE, ("farther and farther away", "back from the middle")),
}
OPENINGS = ("the camera moves {}", "the picture glides {}", "we move {}", "the view travels {}")
SIDEWAYS = {"right": 1, "left": -1}


def choose(seed: int, index: int) -> str:
    """Draw a shot's movement."""
    return pick(np.random.default_rng([seed, index, 3]), tuple(MOVEMENTS))


def tell(scene: Scene, name: str, count: int, rng: np.random.Generator) -> list[str]:
    """Tell of a shot's movement in several ways."""
    openings = rng.permutation(len(OPENINGS))[:count]
    return [_caption(scene, name, OPENINGS[each], rng) for each in openings]


def _caption(scene: Scene, name: str, opening: str, rng: np.random.Generator) -> str:
    moves = opening.format(pick(rng, MOVEMENTS[name].phrases))
    theme = _named(scene.things[0])
    if name not in SIDEWAYS:
        return f"{moves[0].upper()}{moves[1:]} in a shot of {theme}."
    first, *_, last = sorted(scene.things, key=lambda thing: SIDEWAYS[name] * thing.slot.x)
    return f"{moves[0].upper()}{moves[1:]}, {_named(first)} first and {_named(last)} last."


def _named(thing: Thing) -> str:
    several = thing.slot.count > 1
    noun = vocabulary.SHAPES[thing.shape][0][several]
    return f"{'the' if several else 'a'} {vocabulary.COLOURS[thing.colour][0]} {noun}"
