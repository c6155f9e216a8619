"""Draw a scene: the background, then each thing with its shadow, from the farthest to the
nearest.
"""

import math
from dataclasses import dataclass

import numpy as np
from PIL import Image

from pipeline.foundation.manifest.sample import shapes
from pipeline.foundation.manifest.sample.backdrops import Backdrop
from pipeline.foundation.manifest.sample.canvas import Array, Canvas, saturate
from pipeline.foundation.manifest.sample.elementary import hypot, sin
from pipeline.foundation.manifest.sample.scenes import COLOURS, WORLD, Scene, Thing

Direction = tuple[float, float, float]

# Light falls from the upper left, over the viewer's shoulder.
_LIGHT = (-0.48, -0.62, 0.62)
_VIEWER = (0.0, 0.0, 1.0)
_SHADE = (0.0, 0.0, 0.05)


@dataclass(frozen=True)
class Light:
    """The light of a mood."""

    tint: Direction  # its colour
    ambient: float  # the share that comes from all directions, 0 to 1
    shadow: float  # how dark shadows are, 0 to 1


def paint(scene: Scene, size: int, rng: np.random.Generator) -> Image.Image:
    """Draw a scene."""
    canvas = Backdrop(size, scene, rng)
    canvas.paint()
    lights = WORLD["lights"]
    light = Light(**lights.get(scene.mood, lights["other"]))
    for thing in sorted(scene.things, key=_nearness):
        for x in thing.xs:
            _shadow(canvas, thing, x, light)
        for x in thing.xs:
            _thing(canvas, thing, x, light)
    return canvas.image()


def _nearness(thing: Thing) -> tuple[bool, float]:
    """Sort things that stand before those that are carried or fly; of each the far before the
    near.
    """
    return thing.slot.place in ("top", "air"), thing.slot.y


def _shadow(canvas: Canvas, thing: Thing, x: float, light: Light) -> None:
    """A soft spot where the thing rests; for a thing in the air, a fainter one on the ground
    below.
    """
    r = thing.radius
    foot = thing.slot.y
    if thing.slot.place == "air":
        dark = 0.3 * light.shadow
        shadow_x = x + 0.2 * r
        canvas.glow(shadow_x, 0.93, 0.55 * r, 0.012, _SHADE, dark)
        return
    if thing.slot.place != "top":
        cast_x = x + 0.55 * r
        cast_y = foot - 0.05 * r
        dark = 0.5 * light.shadow
        canvas.glow(cast_x, cast_y, 0.75 * r, 0.13 * r, _SHADE, dark)
    contact_x = x + 0.05 * r
    contact_y = foot - 0.02 * r
    canvas.glow(contact_x, contact_y, 0.42 * r, 0.07 * r, _SHADE, 0.5)


def _thing(canvas: Canvas, thing: Thing, x: float, light: Light) -> None:
    r = thing.radius
    middle = thing.slot.y - r
    left, top, right, bottom = (value * r for value in shapes.reach(thing.shape))
    upper_edge = middle + top
    lower_edge = middle + bottom
    where = canvas.window(x + left, upper_edge, x + right, lower_edge)
    across = (canvas.columns(where) - x) / r
    down = (canvas.heights(where) - middle) / r
    grid = np.broadcast_arrays(across, down)
    parts_of = shapes.SHAPES[thing.shape]
    for part in parts_of(*grid):
        outside = part.distance * (r * canvas.side)
        surface = _surface(thing, part)
        colour = _lit(surface, part.normal, light)
        canvas.blend(where, colour, saturate(0.5 - outside))


def _surface(thing: Thing, part: shapes.ShapePart) -> Array:
    """The unlit colour of a part, [3] or [3, h, w]."""
    own_colour = part.colour or COLOURS[thing.colour]["rgb"]
    base = np.asarray(own_colour, np.float32)
    if thing.texture == "plain" or part.pattern is None:
        return base
    u, v = part.pattern
    if thing.texture == "striped":
        runs_around = thing.shape in ("umbrella", "ring")
        along = u if runs_around else v
        wave = sin(np.pi * along)
    elif thing.texture == "checked":
        columns = sin(np.pi * u)
        rows = sin(np.pi * v)
        wave = columns * rows * 2
    else:
        shift = (np.floor(v) % 2) * 0.5  # every other row of spots is moved by half a step
        across = (u + shift) % 1 - 0.5
        down = v % 1 - 0.5
        wave = (0.34 - hypot(across, down)) * 4
    weight = saturate(0.5 + wave * 4)
    accent = np.asarray(COLOURS[thing.accent]["rgb"], np.float32)
    change = (accent - base)[:, None, None]
    return base[:, None, None] + change * weight


def _lit(surface: Array, normal: Array, light: Light) -> Array:
    """Lambert's diffuse term and Blinn's highlight."""
    diffuse = saturate(_towards(_LIGHT, normal))
    highlight = saturate(_towards(_HALFWAY, normal))
    for _ in range(5):  # to the 32nd power
        highlight = highlight * highlight
    shading = light.ambient + (1.12 - light.ambient) * diffuse
    gloss = 0.45 * highlight
    planes = []
    for value, tint in zip(surface, light.tint, strict=True):
        planes.append((value * shading + gloss) * tint)
    return np.stack(planes)


def _towards(direction: Direction, normal: Array) -> Array:
    """The scalar product of a direction and normals [3, ...]. A library's order of sums would
    depend on the CPU.
    """
    x, y, z = (share * part for share, part in zip(direction, normal, strict=True))
    return x + y + z


def _halfway(a: Direction, b: Direction) -> Direction:
    """The unit vector in the middle between two directions."""
    x, y, z = (one + other for one, other in zip(a, b, strict=True))
    squared = x * x + y * y + z * z
    length = math.sqrt(squared)
    return x / length, y / length, z / length


_HALFWAY = _halfway(_LIGHT, _VIEWER)
