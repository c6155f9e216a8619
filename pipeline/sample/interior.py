"""What is in a room: its floor, its walls, and what is on them."""

import numpy as np

from pipeline.sample.canvas import Canvas, Colour, tinted
from pipeline.sample.elementary import decay, sin

Rng = np.random.Generator
WHITE: Colour = (1.0, 1.0, 1.0)
BLACK: Colour = (0.0, 0.0, 0.0)


def planks(canvas: Canvas, rng: Rng, top: float, colour: Colour, count: int) -> None:
    """A wooden floor whose boards run towards the viewer."""
    where = canvas.band(top, 1)
    depth = canvas.y[where[0]] - top
    across = (canvas.x - 0.5) / (depth + 0.22) * (count * 0.6)
    board = np.floor(across)
    tone = rng.uniform(-0.12, 0.12, 4 * count).astype(np.float32)[board.astype(np.int32) % (4 * count)]
    offset = across - board
    gap = np.clip(np.minimum(offset, 1 - offset) * (depth + 0.22) * (220 / count), 0.35, 1)
    grain = 1 + tone + 0.07 * canvas.noise(rng, 128, 4, where)
    canvas.blend(where, tinted(colour, grain * gap * (0.82 + 0.7 * depth)), 1.0)


def wall(canvas: Canvas, rng: Rng, bottom: float, colour: Colour) -> None:
    """Plaster, lit from the left."""
    canvas.gradient(0, bottom, [colour, colour])
    where = canvas.band(0, bottom)
    canvas.shade(where, 0.06 - 0.16 * canvas.x + 0.025 * canvas.noise(rng, 60, 38, where))


def tiles(canvas: Canvas, rng: Rng, bottom: float, colour: Colour) -> None:
    """Square glazed tiles with white joints."""
    wall(canvas, rng, bottom, colour)
    where = canvas.band(0, bottom)
    pitch = 0.104
    jx, jy = (canvas.x / pitch) % 1, (canvas.y[where[0]] / pitch) % 1
    joint = np.clip(np.maximum(np.abs(jx - 0.5), np.abs(jy - 0.5)) * 60 - 28.2, 0, 1)
    canvas.blend(where, (0.80, 0.79, 0.77), joint)
    canvas.blend(where, WHITE, 0.22 * decay(-((jx - 0.25) ** 2 + (jy - 0.25) ** 2) * 40))


def curtain(canvas: Canvas, rng: Rng, bottom: float, colour: Colour) -> None:
    """Heavy folds, with a golden hem."""
    where = canvas.band(0, bottom)
    folds = sin(canvas.x * 62 + 1.2 * sin(canvas.x * 17 + rng.uniform(0, 6)))
    shade = 0.72 + 0.42 * folds + 0.12 * np.clip(folds, 0.7, 1)
    height = 1.12 - 0.4 * canvas.y[where[0]] / bottom
    canvas.blend(where, tinted(colour, shade * height), 1.0)
    canvas.blend(canvas.band(bottom - 0.03, bottom), tinted((0.85, 0.66, 0.22), shade * 0.9), 1.0)


def window(canvas: Canvas, x: float) -> None:
    """A window with a white frame and daylight behind it."""
    canvas.box(x - 0.15, 0.06, x + 0.15, 0.42, (0.97, 0.97, 0.96))
    for left in (x - 0.135, x + 0.008):
        for top in (0.075, 0.248):
            bottom = top + 0.157
            canvas.box(left, top, left + 0.127, bottom, (0.62, 0.82, 0.96))
            shine = [(left + 0.02, bottom), (left + 0.09, top), (left + 0.12, top), (left + 0.05, bottom)]
            canvas.polygon(shine, WHITE, 0.35)
    canvas.box(x - 0.17, 0.42, x + 0.17, 0.44, (0.88, 0.87, 0.85))


def painting(canvas: Canvas, x: float) -> None:
    """A framed landscape on the wall."""
    canvas.box(x - 0.12, 0.105, x + 0.145, 0.335, BLACK, 0.25)
    canvas.box(x - 0.13, 0.09, x + 0.13, 0.32, (0.42, 0.27, 0.12))
    canvas.box(x - 0.11, 0.11, x + 0.11, 0.30, (0.70, 0.84, 0.95))
    hills = ((-0.11, 0.30), (-0.11, 0.24), (-0.03, 0.17), (0.05, 0.25), (0.11, 0.21), (0.11, 0.30))
    canvas.polygon([(x + dx, y) for dx, y in hills], (0.36, 0.55, 0.34))
    canvas.ellipse(x + 0.06, 0.15, 0.02, 0.02, (0.98, 0.82, 0.35))


def shelf(canvas: Canvas, rng: Rng, x: float) -> None:
    """A wall shelf with jars."""
    canvas.box(x - 0.2, 0.245, x + 0.2, 0.285, BLACK, 0.15)
    glass = ((0.80, 0.45, 0.30), (0.92, 0.86, 0.66), (0.55, 0.40, 0.28), (0.75, 0.78, 0.55))
    for middle, colour in zip((x - 0.15, x - 0.06, x + 0.04, x + 0.13), glass, strict=True):
        top = 0.23 - rng.uniform(0.08, 0.13)
        canvas.box(middle - 0.032, top, middle + 0.032, 0.23, colour)
        canvas.box(middle - 0.024, top + 0.01, middle - 0.014, 0.23, WHITE, 0.45)
        canvas.box(middle - 0.035, top - 0.018, middle + 0.035, top, (0.35, 0.30, 0.27))
    canvas.box(x - 0.2, 0.23, x + 0.2, 0.252, (0.52, 0.36, 0.22))


def floor_lamp(canvas: Canvas, x: float, ground: float) -> None:
    """A lit shade on a thin pole."""
    canvas.glow(x, 0.22, 0.16, 0.16, (1.0, 0.95, 0.70), 0.45)
    canvas.box(x - 0.006, 0.26, x + 0.006, ground, (0.25, 0.22, 0.20))
    canvas.ellipse(x, ground, 0.05, 0.014, (0.25, 0.22, 0.20))
    canvas.trapezoid(x, 0.15, 0.04, 0.27, 0.07, (1.0, 0.93, 0.74))


def spotlight(canvas: Canvas, x: float) -> None:
    """A cone of light from above and its pool on the floor."""
    where = canvas.band(0, 0.86)
    y = canvas.y[where[0]]
    beam = np.clip((0.03 + 0.36 * y - np.abs(canvas.x - x)) * (9 - 6 * y), 0, 1)
    canvas.blend(where, (1.0, 0.97, 0.82), beam * (0.40 - 0.44 * y))
    canvas.glow(x, 0.85, 0.24, 0.06, (1.0, 0.96, 0.80), 0.55)
